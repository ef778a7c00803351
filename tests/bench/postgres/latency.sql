-- One commit; column d tells the reader when it was made.
INSERT INTO bench (a, b, c, d, e)
VALUES (1, repeat('x', 60), 12.34, clock_timestamp(), '{"k": 1, "name": "customer"}');
