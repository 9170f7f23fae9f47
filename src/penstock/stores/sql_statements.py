"""What is asked of the user's database; PostgreSQL and SQLite both read all of it."""

_PLACE = "consumer_group VARCHAR(255) NOT NULL, topic VARCHAR(255) NOT NULL, part INTEGER NOT NULL"
_CLAIMED = "token BIGINT NOT NULL, point BIGINT, note TEXT NOT NULL"
_PROGRESS = f"{_PLACE}, {_CLAIMED}, PRIMARY KEY (consumer_group, topic, part)"
_FINISHED = f"{_PLACE}, record_offset BIGINT NOT NULL, PRIMARY KEY (consumer_group, topic, part, record_offset)"
TABLES = (
    f"CREATE TABLE IF NOT EXISTS penstock_progress ({_PROGRESS})",
    f"CREATE TABLE IF NOT EXISTS penstock_inbox ({_FINISHED})",
)
HERE = "consumer_group = :group AND topic = :topic AND part = :part"
CLAIM = (
    "INSERT INTO penstock_progress (consumer_group, topic, part, token, note) VALUES (:group, :topic, :part, 1, '') "
    "ON CONFLICT (consumer_group, topic, part) DO UPDATE SET token = penstock_progress.token + 1"
)
READ = f"SELECT token, point, note FROM penstock_progress WHERE {HERE}"
INBOX = f"SELECT record_offset FROM penstock_inbox WHERE {HERE} ORDER BY record_offset"
SAVE = f"UPDATE penstock_progress SET point = :point, note = :note WHERE {HERE} AND token = :token"
TRIM = f"DELETE FROM penstock_inbox WHERE {HERE} AND record_offset < :point"
FORGET = f"UPDATE penstock_progress SET point = NULL, note = '' WHERE {HERE} AND token = :token"
EMPTY = f"DELETE FROM penstock_inbox WHERE {HERE}"
FINISH = (
    "INSERT INTO penstock_inbox (consumer_group, topic, part, record_offset) "
    f"SELECT consumer_group, topic, part, :offset FROM penstock_progress WHERE {HERE} AND token = :token "
    "AND COALESCE(point, 0) <= :offset /*lock*/ ON CONFLICT DO NOTHING"
)
"""Put an offset into the inbox, where the claim still holds; ``/*lock*/`` is where PostgreSQL is told to share one."""
