-- Version 17: for people, the lines of profiles (common/job/profile.h): a row for each outcome and line.

CREATE VIEW v_profiles AS
SELECT
  o.batch AS batch,
  o.idx AS idx,
  coalesce(j.benchmark, j.ir) AS benchmark,
  j.actions AS actions,
  json_extract(b."values", '$.level') AS level,
  'L' || CAST(line.value AS INTEGER) AS ref,   -- the node of the tree, as it is printed
  CASE CAST(json_extract(b."values", '$.part[' || line.key || ']') AS INTEGER)
    WHEN 0 THEN 'node' WHEN 1 THEN 'pack' WHEN 2 THEN 'zero' WHEN 3 THEN 'combine' ELSE 'outside'
  END AS part,
  json_extract(b."values", '$.share[' || line.key || ']') AS share,
  json_extract(b."values", '$.low[' || line.key || ']') AS low,
  json_extract(b."values", '$.high[' || line.key || ']') AS high,
  json_extract(b."values", '$.cycles[' || line.key || ']') AS cycles,
  json_extract(b."values", '$.entries[' || line.key || ']') AS entries,
  json_extract(b."values", '$.samples[' || line.key || ']') AS samples,
  json_extract(b."values", '$.overhead') AS overhead,
  o.source AS source,
  b.worker AS worker,
  h.class AS hardware_class,
  strftime('%Y-%m-%dT%H:%M:%fZ', b.observed_at / 1e9, 'unixepoch') AS observed_at,
  b.id AS observation
FROM outcomes o
JOIN jobs j ON j.batch = o.batch AND j.idx = o.idx
JOIN observations b ON b.id = -o.result AND b.kind = 'profile'
JOIN conditions c ON c.id = b.conditions
JOIN hardware h ON h.id = c.hardware
JOIN json_each(b."values", '$.ref') line
WHERE o.result < 0;

UPDATE writer SET schema_version = 17;
