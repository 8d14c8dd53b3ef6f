-- A row of a trace has the verdict of the evaluation that was stored with it, so that a million traces are told apart by
-- verdict without a look at their evaluations. It is the trace's verdict unless the trace has another version, or an
-- evaluation of which `with_trace` does not hold: then its evaluations are asked.
ALTER TABLE traces ADD COLUMN verdict_at TIMESTAMP;
ALTER TABLE traces ADD COLUMN verdict_score DOUBLE;
ALTER TABLE traces ADD COLUMN verdict_state VARCHAR;
ALTER TABLE traces ADD COLUMN verdict_rules VARCHAR;
ALTER TABLE evaluations ADD COLUMN with_trace BOOLEAN DEFAULT false;
