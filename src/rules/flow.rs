//! What an item gets from the item that made it.

use serde_json::{Map, Value};

use crate::model::{Deadline, Need, NewItem};

/// The headers that connect an item with the trace of the item that made it.
const TRACE: [&str; 2] = ["traceparent", "tracestate"];

/// How deep items to enqueue may be nested.
pub const DEEPEST: usize = 100;

/// What children have by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inheritance {
    pub priority: i64,
    pub project: Option<String>,
    pub expires: Option<Deadline>,
    trace: Map<String, Value>,
}

impl Inheritance {
    pub fn new(
        priority: i64,
        project: Option<String>,
        expires: Option<Deadline>,
        headers: Option<&Map<String, Value>>,
    ) -> Self {
        let trace = headers.into_iter().flatten().filter(|(name, _)| TRACE.contains(&name.as_str()));
        Self { priority, project, expires, trace: trace.map(|(name, value)| (name.clone(), value.clone())).collect() }
    }

    /// What the children of an item have that is still to be written.
    pub fn of(item: &NewItem) -> Self {
        let headers = item.headers.as_deref().and_then(|json| serde_json::from_str(json).ok());
        Self::new(item.priority, item.project.clone(), item.expires, headers.as_ref())
    }

    /// Gives a child what it does not have itself. A trace is taken over as a whole.
    pub fn give(&self, child: &mut NewItem) {
        if !child.has_priority {
            child.priority = self.priority;
        }
        child.project = child.project.take().or_else(|| self.project.clone());
        child.expires = child.expires.or(self.expires);
        if self.trace.is_empty() {
            return;
        }
        let own = child.headers.as_deref().map_or(Ok(Map::new()), serde_json::from_str);
        if let Ok(mut headers) = own
            && !TRACE.iter().any(|name| headers.contains_key(*name))
        {
            headers.extend(self.trace.clone());
            child.headers = Some(Value::Object(headers).to_string());
        }
    }
}

/// Gives all new items that an item waits for what they inherit, to any depth.
pub fn inherit(item: &mut NewItem) {
    if !item.after.iter().any(|need| matches!(need, Need::New(_))) {
        return;
    }
    let inheritance = Inheritance::of(item);
    for need in &mut item.after {
        if let Need::New(child) = need {
            inheritance.give(child);
            inherit(child);
        }
    }
}

/// How deep the new items are nested that an item waits for.
pub fn depth(item: &NewItem) -> usize {
    // Iterative: the nesting may be deeper than the stack.
    let (mut deepest, mut left) = (0, vec![(item, 0)]);
    while let Some((item, depth)) = left.pop() {
        deepest = deepest.max(depth);
        left.extend(item.after.iter().filter_map(|need| match need {
            Need::New(child) => Some((&**child, depth + 1)),
            Need::Id(_) => None,
        }));
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent() -> NewItem {
        let headers = Some(r#"{"traceparent":"00-1","channel":"x"}"#.into());
        let expires = Some(Deadline::After(1000));
        NewItem { priority: 5, project: Some("p".into()), headers, expires, ..NewItem::text("parent") }
    }

    fn child_of(mut parent: NewItem, child: NewItem) -> NewItem {
        parent.after = vec![Need::New(Box::new(child))];
        inherit(&mut parent);
        match parent.after.remove(0) {
            Need::New(child) => *child,
            Need::Id(_) => unreachable!(),
        }
    }

    #[test]
    fn a_child_inherits_what_it_was_not_given() {
        let child = child_of(parent(), NewItem::text("child"));
        assert_eq!(
            (child.priority, child.project.as_deref(), child.expires),
            (5, Some("p"), Some(Deadline::After(1000)))
        );
        assert_eq!(child.headers.as_deref(), Some(r#"{"traceparent":"00-1"}"#));
    }

    #[test]
    fn a_child_keeps_what_it_was_given() {
        let headers = Some(r#"{"tracestate":"own"}"#.into());
        let given = NewItem { priority: 0, has_priority: true, headers, ..NewItem::text("child") };
        let child = child_of(parent(), given);
        assert_eq!((child.priority, child.headers.as_deref()), (0, Some(r#"{"tracestate":"own"}"#)));
    }
}
