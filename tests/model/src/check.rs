//! Every reachable state is looked at; and every seeded bug is found.

use std::collections::HashMap;

use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::{Action, Bug, State};

struct Queue(Bug);

impl Model for Queue {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(state.actions(self.0));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        last.after(action, self.0)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no finish by a stale holder", |_, state: &State| !state.faults.stale_finish),
            Property::always("one accepted finish per receipt", |_, state: &State| !state.faults.second_finish),
            Property::always("no renewal by a stale holder", |_, state: &State| !state.faults.stale_renewal),
            Property::always("a lease is granted in full", |_, state: &State| !state.faults.short_lease),
            Property::always("an item is tried as often as it may", |_, state: &State| !state.faults.too_many_attempts),
            Property::always("no item is held longer than its lease", |_, state: &State| !state.faults.held_too_long),
            Property::sometimes("all items can come to rest", |_, state: &State| state.is_at_rest()),
        ]
    }
}

fn explored() -> impl Checker<Queue> {
    Queue(Bug::None).checker().threads(2).spawn_bfs().join()
}

#[test]
fn no_interleaving_breaks_a_promise() {
    let checker = explored();
    checker.assert_properties();
    println!("{} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
    assert!(checker.unique_state_count() > 100_000);
}

/// Whether from every reachable state there is a way to one where all items are at rest.
fn every_item_can_come_to_rest(bug: Bug) -> bool {
    let mut known = HashMap::from([(State::new(), 0usize)]);
    let mut states = vec![State::new()];
    let mut before: Vec<Vec<u32>> = vec![Vec::new()];
    let mut at = 0;
    while at < states.len() {
        let state = states[at].clone();
        for action in state.actions(bug) {
            let Some(next) = state.after(action, bug) else { continue };
            let number = *known.entry(next.clone()).or_insert_with(|| {
                states.push(next);
                before.push(Vec::new());
                states.len() - 1
            });
            before[number].push(at as u32);
        }
        at += 1;
    }
    let mut can_rest = vec![false; states.len()];
    let mut found: Vec<usize> = (0..states.len()).filter(|number| states[*number].is_at_rest()).collect();
    while let Some(number) = found.pop() {
        if !std::mem::replace(&mut can_rest[number], true) {
            found.extend(before[number].iter().map(|earlier| *earlier as usize));
        }
    }
    can_rest.into_iter().all(|can| can)
}

#[test]
fn no_item_is_lost_in_any_state_a_way_to_rest_is_left() {
    assert!(every_item_can_come_to_rest(Bug::None));
}

#[test]
fn claims_that_are_never_taken_back_are_noticed() {
    assert!(!every_item_can_come_to_rest(Bug::NothingIsTakenBack));
}

fn breaks(bug: Bug, property: &'static str) {
    let wanted = HasDiscoveries::AllOf([property].into());
    let checker = Queue(bug).checker().threads(2).finish_when(wanted).spawn_bfs().join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("{bug:?} survives"));
    println!("{bug:?}: {:?}", path.into_actions());
}

#[test]
fn a_fence_of_the_id_only_is_noticed() {
    breaks(Bug::FenceIsTheIdOnly, "no finish by a stale holder");
}

#[test]
fn a_fence_that_resets_is_noticed() {
    breaks(Bug::FenceIsAnAttemptThatResets, "no finish by a stale holder");
}

#[test]
fn a_clock_that_is_read_early_is_noticed() {
    breaks(Bug::NowIsReadEarly, "a lease is granted in full");
}

#[test]
fn attempts_that_are_counted_late_are_noticed() {
    breaks(Bug::AttemptsAreCountedLate, "an item is tried as often as it may");
}

#[test]
fn a_clock_that_goes_back_and_is_believed_is_noticed() {
    breaks(Bug::AClockThatGoesBackIsBelieved, "no item is held longer than its lease");
}
