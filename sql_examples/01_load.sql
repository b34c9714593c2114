-- Two tables of made-up people, in SQL that every database understands: 2,000 employees to learn
-- from, and 500 applicants. (For larger tables: sluice sample census --rows 1000000 --into URL)

CREATE TABLE people AS
WITH RECURSIVE numbers(id) AS (
    SELECT CAST(1 AS bigint) UNION ALL SELECT id + 1 FROM numbers WHERE id < 2500
), dice AS (
    SELECT id,
           (id * id * 7919 + id * 104729) % 65521 AS a,
           (id * id * 6247 + id * 15485863) % 65519 AS b,
           (id * id * 3571 + id * 32452843) % 65497 AS c,
           (id * id * 9973 + id * 49979687) % 65479 AS d
    FROM numbers
), person AS (
    SELECT id, 18 + a % 50 AS age, b % 5 AS degree, c % 6 AS job, 20 + d % 41 AS hours,
           CASE WHEN (a + b) % 10 < 5 THEN 1 ELSE 0 END AS married,
           CASE WHEN (b + c) % 12 = 0 THEN 2000 + d % 9000 ELSE 0 END AS gain,
           (c + d) % 100 AS luck
    FROM dice
)
SELECT CAST(id AS integer) AS id, age,
       CASE degree WHEN 0 THEN 'school' WHEN 1 THEN 'college' WHEN 2 THEN 'bachelor'
                   WHEN 3 THEN 'master' ELSE 'doctorate' END AS education,
       CASE job WHEN 0 THEN 'sales' WHEN 1 THEN 'craft' WHEN 2 THEN 'clerk' WHEN 3 THEN 'manager'
                WHEN 4 THEN 'service' ELSE NULL END AS occupation,
       hours, married, gain AS capital_gain,
       CASE WHEN degree * 12 + married * 25 + hours - (age - 45) * (age - 45) / 20
                 + (CASE job WHEN 3 THEN 20 WHEN 4 THEN -15 ELSE 0 END)
                 + (CASE WHEN gain > 5000 THEN 60 ELSE 0 END) + luck / 4 > 95
            THEN '>50K' ELSE '<=50K' END AS income
FROM person;

CREATE TABLE employee AS SELECT * FROM people WHERE id <= 2000;

CREATE TABLE applicant AS SELECT * FROM people WHERE id > 2000;

SELECT income, count(*) AS people FROM employee GROUP BY income ORDER BY income;
