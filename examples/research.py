"""A research agent: it plans, reads pages side by side, asks a person, and writes a report.

    python research.py          until the agent waits for you
    python research.py yes      your answer, and the rest; or: no

The agent is one plain function. Wherever it waits, for its pages or for you, it holds no slot and no process: between
the two calls nothing runs. Kill it where you like; what a step has done is not done again.
"""

import sys

from membox_queue import GiveUp, Item, NewItem, Queue, Worker

FILE = "research.db"
QUESTION = "How do queues keep their promises?"
A_DAY = 86_400
WEB = {
    "wal.example": "A commit is in the log before anything else happens.",
    "lease.example": "A worker that dies loses its lease, and its work comes back.",
    "moved.example": "",
}


def stand_in_for_the_planning_model(question: str) -> list[str]:
    """Stands for a call of a language model: which pages to read."""
    print(f"planning: {question}", flush=True)
    return sorted(WEB)


def stand_in_for_the_reading_model(page: str) -> str:
    """Stands for a language model that summarizes a page."""
    if not WEB[page]:
        raise GiveUp("the page is empty")
    return WEB[page].split(",")[0].rstrip(".")


def stand_in_for_the_writing_model(question: str, findings: list[str]) -> str:
    """Stands for a language model that writes the report."""
    return "\n".join([question, *(f"- {finding}" for finding in findings)])


def read(item: Item[str]) -> str:
    """Read one page. Pages are items of their own: with limits, retries and failures of their own."""
    print(f"reading:  {item.content}", flush=True)
    return stand_in_for_the_reading_model(item.content)


def research(item: Item[str]) -> str:
    """The agent. It runs from its first line after each wait; steps and gathers return what they have."""
    plan = item.step("plan", stand_in_for_the_planning_model, item.content)
    pages = item.gather("pages", [NewItem(page, queue="pages") for page in plan], if_failed="run")
    findings = [page.result for page in pages if page.status == "done"]
    lost = [f"{page.content}: {page.error}" for page in pages if page.status != "done"]

    question = NewItem({"publish": findings, "lost": lost}, queue="approvals", key=f"approve-{item.id}", expires=A_DAY)
    (approval,) = item.gather("approval", [question], if_failed="run")
    if approval.status != "done":
        raise GiveUp(f"not approved: {approval.error}")
    return item.step("write", stand_in_for_the_writing_model, item.content, findings)


def main() -> None:
    with Queue(FILE, "research") as agents, Queue(FILE, "approvals") as approvals:
        id = agents.enqueue(QUESTION, key="queues", key_ttl=A_DAY)  # the same id however often it is asked
        if len(sys.argv) > 1:
            reply = {"result": "yes"} if sys.argv[1] == "yes" else {"error": f"you said {sys.argv[1]}"}
            print("answered" if approvals.answer(key=f"approve-{id}", **reply) else "there is nothing to answer")
        print(Worker(FILE, {"research": research, "pages": read}, concurrency=2).drain())

        agent = agents.get(id)
        for waiting in approvals.items("pending"):
            print(f"approve?  {waiting.content['publish']}, without {waiting.content['lost']}")
        print(f"{agent.status}: {agent.result or agent.error or 'python research.py yes'}")


if __name__ == "__main__":
    main()
