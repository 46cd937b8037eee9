//! What a child takes over from the item whose handler made it.

use serde_json::{Map, Value};

use crate::model::{Item, NewItem};

/// The headers of a trace, which goes on in the child.
const TRACE: [&str; 2] = ["traceparent", "tracestate"];

/// Which options of a child were given; the others are taken over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    pub priority: bool,
    pub project: bool,
    pub expires: bool,
}

/// Gives a child what it takes over from its parent, except its deadline.
pub fn inherit(child: &mut NewItem, given: Given, parent: &Item) {
    if !given.priority {
        child.priority = parent.priority;
    }
    if !given.project {
        child.project.clone_from(&parent.project);
    }
    if let Some(headers) = &parent.headers {
        take_trace(child, headers);
    }
}

/// Lets the trace in these headers go on in a child.
pub fn take_trace(child: &mut NewItem, headers: &Map<String, Value>) {
    let trace = trace(headers);
    if trace.is_empty() {
        return;
    }
    let own = child.headers.as_deref().map(serde_json::from_str::<Map<String, Value>>);
    let Some(mut headers) = own.transpose().ok().map(Option::unwrap_or_default) else { return };
    // A trace of its own goes on alone.
    if TRACE.iter().any(|name| headers.contains_key(*name)) {
        return;
    }
    headers.extend(trace);
    child.headers = serde_json::to_string(&headers).ok();
}

fn trace(headers: &Map<String, Value>) -> Map<String, Value> {
    let found = |name: &&str| headers.get(*name).map(|value| ((*name).to_owned(), value.clone()));
    TRACE.iter().filter_map(found).collect()
}
