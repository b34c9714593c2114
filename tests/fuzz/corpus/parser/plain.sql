SELECT 1; SELECT 2 -- it's
; /*+ hint */ SELECT ';' ;; ; -- the end, don't