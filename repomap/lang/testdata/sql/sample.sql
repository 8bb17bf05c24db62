-- CREATE TABLE no (x int);
CREATE TABLE IF NOT EXISTS shop.items (
  id serial PRIMARY KEY,
  name text DEFAULT 'it''s create table no (',
  kind text CHECK (kind IN ('a'))
);
create or replace view cheap as select * from items;
CREATE UNIQUE INDEX CONCURRENTLY items_name ON items (name);
CREATE OR REPLACE FUNCTION total(a int, b int) RETURNS int AS $body$
BEGIN
  CREATE TABLE no (x int);
END;
$body$ LANGUAGE plpgsql;
CREATE PROCEDURE `db`.`clean`(IN x INT) BEGIN DELETE FROM items; END;
CREATE TRIGGER "before" BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION f();
CREATE TYPE color AS ENUM ('red', 'create type no');
CREATE TEMPORARY TABLE [quoted name] (a int);
CREATE MATERIALIZED VIEW stats AS SELECT 1;
CREATE SCHEMA app;
CREATE SEQUENCE ids START 1;
/* create table no (a int); */
INSERT INTO items VALUES (1, 'create view no');
