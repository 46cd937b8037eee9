//! Items that wait for new ones: what those take over, and how deep they may be nested.

use serde_json::{Map, Value};

use super::inherit::take_trace;
use crate::model::{Need, NewItem};

/// How deep items to enqueue may be nested.
pub const DEEPEST: usize = 100;

/// Gives all new items that an item waits for what they inherit, to any depth.
pub fn inherit(item: &mut NewItem) {
    if !item.after.iter().any(|need| matches!(need, Need::New(_))) {
        return;
    }
    let headers = item.headers.as_deref().and_then(|json| serde_json::from_str::<Map<String, Value>>(json).ok());
    for need in &mut item.after {
        let Need::New(child) = need else { continue };
        if !child.has_priority {
            child.priority = item.priority;
        }
        child.project = child.project.take().or_else(|| item.project.clone());
        child.expires = child.expires.or(item.expires);
        if let Some(headers) = &headers {
            take_trace(child, headers);
        }
        inherit(child);
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
    use crate::model::Deadline;

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
