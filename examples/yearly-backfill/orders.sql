-- All orders: those of every day, and those of the years before this pipeline.
CREATE OR REFRESH STREAMING TABLE orders;

-- What comes in, file by file, for ever.
CREATE FLOW daily AS INSERT INTO orders BY NAME
SELECT * FROM STREAM read_files('incoming', format => 'json', schema => '${columns}');

-- The archive, a year at a time: each flow runs once. A year waits for the one before it, and none holds up what comes in.
CREATE FLOW year_2022 AS INSERT INTO ONCE orders BY NAME
SELECT * FROM read_files('archive/2022', format => 'json', schema => '${columns}');

CREATE FLOW year_2023 DEPENDS ON (year_2022) AS INSERT INTO ONCE orders BY NAME
SELECT * FROM read_files('archive/2023', format => 'json', schema => '${columns}');

CREATE FLOW year_2024 DEPENDS ON (year_2023) AS INSERT INTO ONCE orders BY NAME
SELECT * FROM read_files('archive/2024', format => 'json', schema => '${columns}');
