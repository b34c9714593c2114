SELECT E'a'
 '\'; b' FROM t; SELECT 1