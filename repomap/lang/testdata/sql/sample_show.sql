SHOW CREATE TABLE items;
CREATE TABLE items (id int);
