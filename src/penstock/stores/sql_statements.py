"""The SQL statements of ``SqlOffsets``; PostgreSQL and SQLite both accept all of them."""

_PARTITION_COLUMNS = "consumer_group VARCHAR(255) NOT NULL, topic VARCHAR(255) NOT NULL, part INTEGER NOT NULL"
_PROGRESS_COLUMNS = "token BIGINT NOT NULL, point BIGINT, metadata TEXT NOT NULL"
_PROGRESS = f"{_PARTITION_COLUMNS}, {_PROGRESS_COLUMNS}, PRIMARY KEY (consumer_group, topic, part)"
_FINISHED = (
    f"{_PARTITION_COLUMNS}, record_offset BIGINT NOT NULL, PRIMARY KEY (consumer_group, topic, part, record_offset)"
)
_SEEN_COLUMNS = "consumer_group VARCHAR(255) NOT NULL, handler VARCHAR(255) NOT NULL, record_id VARCHAR(64) NOT NULL"
_SEEN = (
    f"{_SEEN_COLUMNS}, origin VARCHAR(300) NOT NULL, expires BIGINT NOT NULL, "
    "PRIMARY KEY (consumer_group, handler, record_id)"
)
TABLES = (
    f"CREATE TABLE IF NOT EXISTS penstock_progress ({_PROGRESS})",
    f"CREATE TABLE IF NOT EXISTS penstock_inbox ({_FINISHED})",
    f"CREATE TABLE IF NOT EXISTS penstock_seen ({_SEEN})",
    "CREATE INDEX IF NOT EXISTS penstock_seen_expires ON penstock_seen (consumer_group, expires)",
)
THIS_PARTITION = "consumer_group = :group AND topic = :topic AND part = :part"
CLAIM = (
    "INSERT INTO penstock_progress (consumer_group, topic, part, token, metadata) "
    "VALUES (:group, :topic, :part, 1, '') "
    "ON CONFLICT (consumer_group, topic, part) DO UPDATE SET token = penstock_progress.token + 1"
)
READ = f"SELECT token, point, metadata FROM penstock_progress WHERE {THIS_PARTITION}"
INBOX = f"SELECT record_offset FROM penstock_inbox WHERE {THIS_PARTITION} ORDER BY record_offset"
SAVE = f"UPDATE penstock_progress SET point = :point, metadata = :metadata WHERE {THIS_PARTITION} AND token = :token"
TRIM = f"DELETE FROM penstock_inbox WHERE {THIS_PARTITION} AND record_offset < :point"
FORGET = f"UPDATE penstock_progress SET point = NULL, metadata = '' WHERE {THIS_PARTITION} AND token = :token"
EMPTY = f"DELETE FROM penstock_inbox WHERE {THIS_PARTITION}"
FINISH = (
    "INSERT INTO penstock_inbox (consumer_group, topic, part, record_offset) "
    f"SELECT consumer_group, topic, part, :offset FROM penstock_progress WHERE {THIS_PARTITION} AND token = :token "
    "AND COALESCE(point, 0) <= :offset /*lock*/ ON CONFLICT DO NOTHING"
)
"""Insert an offset into the inbox if the claim still holds. PostgreSQL gets ``FOR SHARE`` in place of ``/*lock*/``."""
REMEMBER = (
    "INSERT INTO penstock_seen (consumer_group, handler, record_id, origin, expires) "
    "VALUES (:group, :handler, :id, :origin, :until) ON CONFLICT (consumer_group, handler, record_id) "
    "DO UPDATE SET origin = excluded.origin, expires = excluded.expires "
    "WHERE penstock_seen.expires <= :now OR penstock_seen.origin = excluded.origin"
)
"""Insert an id, or replace one that has expired or belongs to the same record. A second record changes no row."""
_SOME_EXPIRED = (
    "SELECT consumer_group, handler, record_id FROM penstock_seen "
    "WHERE consumer_group = :group AND expires <= :now LIMIT :most"
)
FORGET_IDS = f"DELETE FROM penstock_seen WHERE (consumer_group, handler, record_id) IN ({_SOME_EXPIRED})"
