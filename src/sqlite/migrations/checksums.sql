-- A checksum over content, content_type and headers, by which a claim sees that they are still what was enqueued. NULL:
-- none was computed, as for rows of plain SQL.

-- What somebody changes on purpose is no damage.
CREATE TRIGGER ingest_queue_changed AFTER UPDATE OF content, content_type, headers ON ingest_queue
    WHEN NEW.checksum IS OLD.checksum
     AND (NEW.content IS NOT OLD.content OR NEW.content_type IS NOT OLD.content_type OR NEW.headers IS NOT OLD.headers)
BEGIN
    UPDATE ingest_queue SET checksum = NULL WHERE id = NEW.id;
END;

CREATE TRIGGER membox_queue_schedule_changed AFTER UPDATE OF content, content_type, headers ON membox_queue_schedules
    WHEN NEW.checksum IS OLD.checksum
     AND (NEW.content IS NOT OLD.content OR NEW.content_type IS NOT OLD.content_type OR NEW.headers IS NOT OLD.headers)
BEGIN
    UPDATE membox_queue_schedules SET checksum = NULL WHERE queue = NEW.queue AND name = NEW.name;
END;
