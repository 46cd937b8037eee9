-- Whether a table is WITHOUT ROWID. ?1 table
SELECT wr FROM pragma_table_list(?1) WHERE schema = 'main'
