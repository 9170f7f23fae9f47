"""The SQL statements of ``SqlOffsets``; PostgreSQL and SQLite both accept all of them."""

_PARTITION_COLUMNS = "consumer_group VARCHAR(255) NOT NULL, topic VARCHAR(255) NOT NULL, part INTEGER NOT NULL"
_PROGRESS_COLUMNS = "token BIGINT NOT NULL, point BIGINT, note TEXT NOT NULL"
_PROGRESS = f"{_PARTITION_COLUMNS}, {_PROGRESS_COLUMNS}, PRIMARY KEY (consumer_group, topic, part)"
_FINISHED = (
    f"{_PARTITION_COLUMNS}, record_offset BIGINT NOT NULL, PRIMARY KEY (consumer_group, topic, part, record_offset)"
)
TABLES = (
    f"CREATE TABLE IF NOT EXISTS penstock_progress ({_PROGRESS})",
    f"CREATE TABLE IF NOT EXISTS penstock_inbox ({_FINISHED})",
)
THIS_PARTITION = "consumer_group = :group AND topic = :topic AND part = :part"
CLAIM = (
    "INSERT INTO penstock_progress (consumer_group, topic, part, token, note) VALUES (:group, :topic, :part, 1, '') "
    "ON CONFLICT (consumer_group, topic, part) DO UPDATE SET token = penstock_progress.token + 1"
)
READ = f"SELECT token, point, note FROM penstock_progress WHERE {THIS_PARTITION}"
INBOX = f"SELECT record_offset FROM penstock_inbox WHERE {THIS_PARTITION} ORDER BY record_offset"
SAVE = f"UPDATE penstock_progress SET point = :point, note = :note WHERE {THIS_PARTITION} AND token = :token"
TRIM = f"DELETE FROM penstock_inbox WHERE {THIS_PARTITION} AND record_offset < :point"
FORGET = f"UPDATE penstock_progress SET point = NULL, note = '' WHERE {THIS_PARTITION} AND token = :token"
EMPTY = f"DELETE FROM penstock_inbox WHERE {THIS_PARTITION}"
FINISH = (
    "INSERT INTO penstock_inbox (consumer_group, topic, part, record_offset) "
    f"SELECT consumer_group, topic, part, :offset FROM penstock_progress WHERE {THIS_PARTITION} AND token = :token "
    "AND COALESCE(point, 0) <= :offset /*lock*/ ON CONFLICT DO NOTHING"
)
"""Insert an offset into the inbox if the claim still holds. PostgreSQL gets ``FOR SHARE`` in place of ``/*lock*/``."""
