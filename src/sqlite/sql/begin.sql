-- Begins a transaction on the caller's connection, with the write lock.
BEGIN IMMEDIATE
