-- Every word of a trace once, so that a search need not read its texts; see words.rs. Where it is null, the texts are read.
ALTER TABLE traces ADD COLUMN words VARCHAR;
