-- Name, declared type, whether NULL is refused, default and place in the key of each column. ?1 table
SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?1)
