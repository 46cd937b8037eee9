-- Lists the columns of a table: name, declared type, NOT NULL, default and position in the primary key. ?1 table
SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?1)
