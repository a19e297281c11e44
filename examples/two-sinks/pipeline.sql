-- Two sinks that a Rust program writes. The flow into the second one starts when the first one has taken everything.

CREATE SINK ledger USING foreachBatch COMMENT 'every order, once';
CREATE SINK mail USING foreachBatch COMMENT 'one mail an order';

CREATE FLOW book AS INSERT INTO ledger BY NAME
SELECT order_id, customer, amount
FROM STREAM read_files('orders/*.json', format => 'json',
  schema => 'order_id BIGINT, customer STRING, amount DECIMAL(10, 2)', maxFilesPerTrigger => 2);

CREATE FLOW tell DEPENDS ON (book) AS INSERT INTO mail BY NAME
SELECT order_id, customer
FROM STREAM read_files('orders/*.json', format => 'json',
  schema => 'order_id BIGINT, customer STRING, amount DECIMAL(10, 2)', maxFilesPerTrigger => 2);
