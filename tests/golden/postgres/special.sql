-- Values that Connect's Decimal does not have.
INSERT INTO every_type (num, num_10_2) VALUES ('NaN', 'NaN');
INSERT INTO every_type (num) VALUES ('Infinity');
INSERT INTO every_type (num) VALUES ('-Infinity');
