-- Name, whether a plain insert may leave it out, and whether it is the rowid or key, of each column. ?1 table
SELECT name, "notnull" = 0 OR dflt_value IS NOT NULL, pk FROM pragma_table_info(?1)
