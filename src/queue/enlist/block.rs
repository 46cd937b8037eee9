//! The block of `item.transaction`: the claim ends in the transaction of the caller's own writes. If none is open, the
//! block is a transaction; inside the caller's own it is a savepoint, and the caller commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::finish::FinishSteps;
use super::{Enlistment, Frame, Outcome, Phase, Rows, Step, Steps, integer};
use crate::error::{Error, Result};
use crate::queue::Queue;
use crate::queue::claim::ClaimedItem;
use crate::rules::outcome::{Ending, Settled};
use crate::store::{BlockStatement, ForeignStatements, Statement};

pub struct Block {
    queue: Arc<Queue>,
    held: Arc<ClaimedItem>,
    foreign: &'static dyn ForeignStatements,
    /// The block is a transaction of its own.
    is_own: AtomicBool,
    /// The block was left, or undone because that failed.
    is_left: AtomicBool,
    /// The failure is recorded on the caller's connection.
    is_recorded: AtomicBool,
}

impl Queue {
    pub fn block(self: &Arc<Self>, held: &Arc<ClaimedItem>) -> Result<Block> {
        self.check_is_ours(held)?;
        let foreign = self.session()?.store.foreign();
        let flag = || AtomicBool::new(false);
        let (is_own, is_left, is_recorded) = (flag(), flag(), flag());
        Ok(Block { queue: self.clone(), held: held.clone(), foreign, is_own, is_left, is_recorded })
    }
}

impl Block {
    /// Returns which database the caller's connection is open on.
    pub fn location(&self) -> Statement {
        self.foreign.location()
    }

    /// Begins the block and presents the receipt. `is_open`: the caller has begun a transaction. `is_begun`: so has the
    /// connection itself; a library may do that only at the first change.
    pub fn enter(&self, is_open: bool, is_begun: bool) -> Result<Enlistment> {
        if self.held.is_settled() || self.held.is_known_lost() {
            return Err(self.queue.why_stale(&self.held)?);
        }
        self.is_own.store(!is_open, Ordering::SeqCst);
        self.is_left.store(false, Ordering::SeqCst);
        self.is_recorded.store(false, Ordering::SeqCst);
        let opening = match (is_open, is_begun) {
            (false, _) => vec![self.foreign.block(BlockStatement::Begin)],
            (true, true) => vec![self.foreign.block(BlockStatement::Savepoint)],
            // The caller's library has not begun its transaction yet, and a savepoint must not be the outermost.
            (true, false) => vec![self.foreign.begin(), self.foreign.block(BlockStatement::Savepoint)],
        };
        let steps = PresentSteps {
            foreign: self.foreign,
            queue: self.queue.clone(),
            held: self.held.clone(),
            running: Presenting::Receipt,
        };
        let frame = Frame { opening: opening.into(), closing: [].into(), undoing: self.undoing().into() };
        Ok(self.enlistment(Box::new(steps), frame))
    }

    /// Leaves the block as `ending` says: `None` records nothing. `is_begun`: the transaction is still open. If this
    /// fails, the block is undone, and is to be left once more with the failure.
    pub fn leave(&self, ending: Option<Ending>, is_raised: bool, is_begun: bool) -> Result<Enlistment> {
        let was_left = self.is_left.swap(true, Ordering::SeqCst);
        if is_raised {
            return self.leave_undone(ending, was_left, is_begun);
        }
        if !is_begun {
            if self.held.promised().is_some() {
                return Ok(self.enlistment(Box::new(NoSteps), Frame::default()));
            }
            return Err(Error::Invalid(format!(
                "the block of item.transaction ended its transaction itself, so item {} could not end in it; let the \
                 block commit, or begin the transaction before it",
                self.held.item.id
            )));
        }
        let closing = match self.is_own() {
            true => BlockStatement::Commit,
            false => BlockStatement::Release,
        };
        let steps = LeaveSteps {
            foreign: self.foreign,
            queue: self.queue.clone(),
            held: self.held.clone(),
            ending: ending.unwrap_or(Ending::Done { result: None }),
            finish: None,
        };
        let closing = [self.foreign.block(closing)].into();
        Ok(self.enlistment(Box::new(steps), Frame { opening: [].into(), closing, undoing: self.undoing().into() }))
    }

    /// Undoes the block. In the caller's own transaction the failure is then recorded there.
    fn leave_undone(&self, ending: Option<Ending>, was_left: bool, is_begun: bool) -> Result<Enlistment> {
        self.held.forget_promise();
        let mut opening = if is_begun && !was_left { self.undoing() } else { Vec::new() };
        let records = is_begun && !self.is_own() && !self.held.is_settled();
        let (Some(ending), true) = (ending, records) else {
            let frame = Frame { opening: opening.into(), ..Frame::default() };
            return Ok(self.enlistment(Box::new(NoSteps), frame));
        };
        let mut frame = Frame::of_verb(self.foreign, true);
        opening.extend(frame.opening);
        frame.opening = opening.into();
        let steps = FinishSteps::new(&self.queue, &self.held, ending)?;
        Ok(self.enlistment(Box::new(steps), frame))
    }

    /// Marks the failure as recorded on the caller's connection.
    pub fn mark_recorded(&self) {
        self.is_recorded.store(true, Ordering::SeqCst);
    }

    /// Called once the connection has done its part: records on our own connection what that could not.
    pub fn settle(&self, ending: Option<Ending>, is_raised: bool) -> Result<Settled> {
        if !is_raised {
            let Some(settled) = self.held.promised() else { return Ok(Settled::Done) };
            if self.is_own() {
                self.held.mark_settled(settled);
            }
            return Ok(settled);
        }
        match ending {
            Some(ending) if !self.is_recorded.load(Ordering::SeqCst) => {
                self.held.settled().map_or_else(|| self.queue.finish(&self.held, ending), Ok)
            }
            _ => Ok(Settled::Released),
        }
    }

    fn is_own(&self) -> bool {
        self.is_own.load(Ordering::SeqCst)
    }

    fn undoing(&self) -> Vec<Statement> {
        let statements = if self.is_own() {
            &[BlockStatement::RollBack][..]
        } else {
            &[BlockStatement::Undo, BlockStatement::Release][..]
        };
        statements.iter().map(|statement| self.foreign.block(*statement)).collect()
    }

    fn enlistment(&self, steps: Box<dyn Steps>, frame: Frame) -> Enlistment {
        let ends = Some(self.held.clone());
        Enlistment { steps, phase: Phase::Opening, foreign: self.foreign, frame: Some(frame), ends }
    }
}

struct NoSteps;

impl Steps for NoSteps {
    fn begin(&mut self) -> Result<Step> {
        Ok(Step::Done(Outcome::Nothing))
    }

    fn next(&mut self, _: &Rows) -> Result<Step> {
        self.begin()
    }
}

/// Presents the receipt, and takes the write lock with it: from then on, no other process can reclaim the item.
struct PresentSteps {
    foreign: &'static dyn ForeignStatements,
    queue: Arc<Queue>,
    held: Arc<ClaimedItem>,
    running: Presenting,
}

enum Presenting {
    Receipt,
    Written,
    /// Asks why the receipt is not valid.
    Reason,
}

impl Steps for PresentSteps {
    fn begin(&mut self) -> Result<Step> {
        Ok(Step::Run(self.foreign.present(self.queue.name(), self.held.receipt())?))
    }

    fn next(&mut self, rows: &Rows) -> Result<Step> {
        match self.running {
            Presenting::Receipt => {
                self.running = Presenting::Written;
                Ok(Step::Run(self.foreign.written()))
            }
            Presenting::Written if rows.first().is_some_and(|row| integer(row, 1) == 1) => {
                self.held.forget_promise();
                Ok(Step::Done(Outcome::Nothing))
            }
            Presenting::Written => {
                self.running = Presenting::Reason;
                Ok(Step::Run(self.foreign.holds(
                    self.queue.name(),
                    self.held.receipt(),
                    self.queue.options().clock.now(),
                )?))
            }
            Presenting::Reason if rows.is_empty() => Err(self.queue.why_stale(&self.held)?),
            Presenting::Reason => Err(self.held.cancelled_meanwhile()),
        }
    }
}

/// Ends the item unless the block has ended it, as the row shows on the caller's connection.
struct LeaveSteps {
    foreign: &'static dyn ForeignStatements,
    queue: Arc<Queue>,
    held: Arc<ClaimedItem>,
    ending: Ending,
    finish: Option<FinishSteps>,
}

impl Steps for LeaveSteps {
    fn begin(&mut self) -> Result<Step> {
        Ok(Step::Run(self.foreign.holds(self.queue.name(), self.held.receipt(), self.queue.options().clock.now())?))
    }

    fn next(&mut self, rows: &Rows) -> Result<Step> {
        if let Some(finish) = &mut self.finish {
            return finish.next(rows);
        }
        if !rows.is_empty() {
            let finish = FinishSteps::new(&self.queue, &self.held, self.ending.clone())?;
            return self.finish.insert(finish).begin();
        }
        match self.held.promised() {
            Some(settled) => Ok(Step::Done(Outcome::Ended(settled))),
            None => Err(self.queue.why_stale(&self.held)?),
        }
    }

    fn failed(&mut self) -> Result<Step> {
        self.finish.as_mut().map_or(Ok(Step::Fail), Steps::failed)
    }
}
