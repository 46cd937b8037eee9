-- Makes an item wait for another, which counts as met if that one is done. ?1 item ?2 place ?3 needed item ?4 if_failed
INSERT INTO main.membox_queue_after (item, place, needs, if_failed, state)
SELECT ?1, ?2, ?3, ?4, EXISTS (SELECT 1 FROM main.ingest_queue WHERE id = ?3 AND status = 'done')
