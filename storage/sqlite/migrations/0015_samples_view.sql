-- Version 15: for people, a job's index without quotes, how many actions it has, and the samples of a
-- result as JSON.

PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(replace(sql, 'j.actions AS actions,',
                  'j.actions AS actions,
  CASE WHEN j.actions = '''' THEN 0
       ELSE length(j.actions) - length(replace(j.actions, '','', '''')) + 1 END AS action_count,'),
                  'o.idx AS "index",', 'o.idx AS "index",
  o.idx AS idx,')
WHERE type = 'view' AND name = 'v_results';
PRAGMA writable_schema = RESET;

-- The inner values: a sample's 16 hexadecimal digits, its bits as an integer, its exponent. Exact for
-- 2^-62 to 2^62 ns, shown with 15 digits. (json_group_array is refused where the schema is untrusted.)
CREATE VIEW v_samples AS
SELECT
  r.id AS result,
  (SELECT '[' || coalesce(group_concat(
     (4503599627370496 + (bits & 4503599627370495)) / 4503599627370496.0 *
     CASE WHEN exponent >= 0 THEN 1 << exponent ELSE 1.0 / (1 << -exponent) END), '') || ']'
   FROM (
     SELECT bits, (bits >> 52) - 1023 AS exponent
     FROM (
       SELECT (SELECT sum(instr('123456789ABCDEF', substr(digits, digit.value + 1, 1))
                          << (8 * (digit.value / 2) + 4 * (1 - digit.value % 2)))
               FROM json_each('[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]') digit) AS bits
       FROM (
         SELECT hex(substr(r.samples_ns, 8 * sample.key + 1, 8)) AS digits
         FROM json_each('[' || rtrim(replace(hex(zeroblob(length(r.samples_ns) / 8)), '00', '0,'), ',')
                        || ']') sample)))) AS samples_ns,
  (SELECT '[' || coalesce(group_concat(
     instr('123456789ABCDEF', substr(hex(substr(r.sample_flags, sample.key + 1, 1)), 1, 1)) * 16 +
     instr('123456789ABCDEF', substr(hex(substr(r.sample_flags, sample.key + 1, 1)), 2, 1))), '') || ']'
   FROM json_each('[' || rtrim(replace(hex(zeroblob(length(r.sample_flags))), '00', '0,'), ',')
                  || ']') sample) AS sample_flags
FROM results r;

UPDATE writer SET schema_version = 15;
