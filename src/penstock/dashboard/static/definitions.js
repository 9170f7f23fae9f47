// What each figure means: the tooltips. One sentence or two, in the words of the glossary.

export const DEFINITIONS = {
  group: "The consumer group: members with the same group.id share the partitions of its topics.",
  status: "By Burrow's rules, from the commits of the last 5 minutes: OK; WARN: commits advance, the lag does not shrink; STALL: commits do not advance; STOP: no commits although records wait; REWIND: a commit went backwards.",
  state: "What the coordinator says: Stable, Empty (no members), PreparingRebalance and so on.",
  lag: "Records in the log after the committed offset.",
  lag_seconds: "The age of the first record that the group has not finished.",
  rate_in: "Records written to the group's partitions, per second, in the last minute.",
  rate_out: "Records that the group finishes, per second, by its last commits.",
  drain: "Time until the lag is 0 if the rates stay as they are. – if it does not shrink.",
  trend: "The lag in the last minutes.",
  members: "Clients that have joined the group.",
  partitions: "Partitions that the group has committed or owns.",
  lost: "Records that retention deleted before the group committed them.",
  apps: "Runs of `penstock run` on this machine for this group.",
  above: "Records after the commit point that are finished already, from the offset map in the metadata of the commit.",
  margin: "Time until retention deletes records that the group has not finished, if the rates stay as they are. Safe: the group keeps up, or the topic keeps records for ever.",
  dead: "Records in the dead-letter topics of the group's topics, by their names: orders.dlq belongs to orders.",
  commit_age: "Time since the last commit for this partition.",
  committed: "The commit point: the first offset that the group has not finished.",
  start: "The first offset that the log still has.",
  end: "The offset that the next record will get.",
};
