"""Reading beside another process that writes."""


def test_looking_does_not_wait_for_a_writer(queue, writer):
    qid = queue.enqueue("x")
    writer()
    assert queue.get(qid).content == "x"
    assert queue.pending() == 1
