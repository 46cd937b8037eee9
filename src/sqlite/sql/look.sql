-- Updates the first so many dependents of an item by what has become of it. ?1 item ?2 how many ?3 now as text
INSERT INTO main.membox_queue_look (item, most, now) VALUES (?1, ?2, ?3)
