import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** Kafka's own assignors on one group, warm: prints the best seconds of a fresh assignment and after one member left. */
public final class AssignorBench {
    private AssignorBench() {
    }

    public static void main(String[] arguments) {
        String name = arguments[0];
        int members = Integer.parseInt(arguments[1]);
        int topics = Integer.parseInt(arguments[2]);
        int partitions = Integer.parseInt(arguments[3]);
        boolean mixed = arguments[4].equals("mixed");
        double seconds = Double.parseDouble(arguments[5]);
        Cluster cluster = cluster(topics, partitions);
        double fresh = Double.MAX_VALUE;
        double leaving = Double.MAX_VALUE;
        long end = System.nanoTime() + (long) (seconds * 1e9);
        for (int round = 0; round < 3 || System.nanoTime() < end; round++) {
            Map<String, Subscription> joined = joined(members, topics, mixed);
            long start = System.nanoTime();
            Map<String, Assignment> given = assign(name, cluster, joined);
            fresh = Math.min(fresh, (System.nanoTime() - start) / 1e9);
            Map<String, Subscription> left = grownOld(name, joined, given);
            left.remove(member(members - 1));
            start = System.nanoTime();
            assign(name, cluster, left);
            leaving = Math.min(leaving, (System.nanoTime() - start) / 1e9);
        }
        System.out.println(fresh + " " + leaving);
    }

    private static Map<String, Assignment> assign(String name, Cluster cluster, Map<String, Subscription> members) {
        return assignor(name).assign(cluster, new GroupSubscription(members)).groupAssignment();
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
    }

    private static String member(int number) {
        return String.format("consumer-%05d", number);
    }

    private static Cluster cluster(int topics, int partitions) {
        Node[] nodes = {new Node(0, "host", 9092)};
        List<PartitionInfo> all = new ArrayList<>();
        for (int topic = 0; topic < topics; topic++) {
            for (int number = 0; number < partitions; number++) {
                all.add(new PartitionInfo(String.format("topic-%04d", topic), number, nodes[0], nodes, nodes));
            }
        }
        return new Cluster("cluster", List.of(nodes), all, Set.of(), Set.of());
    }

    private static Map<String, Subscription> joined(int members, int topics, boolean mixed) {
        Map<String, Subscription> joined = new HashMap<>();
        for (int number = 0; number < members; number++) {
            List<String> names = new ArrayList<>();
            for (int topic = 0; topic < topics; topic++) {
                if (!mixed || (topic + number) % 2 == 0) {
                    names.add(String.format("topic-%04d", topic));
                }
            }
            joined.put(member(number), new Subscription(names, null, List.of(), -1, Optional.empty()));
        }
        return joined;
    }

    private static Map<String, Subscription> grownOld(
        String name, Map<String, Subscription> joined, Map<String, Assignment> given
    ) {
        Map<String, Subscription> old = new HashMap<>();
        joined.forEach((member, subscription) -> {
            List<TopicPartition> owned = given.get(member).partitions();
            ByteBuffer data = null;
            if (name.equals("sticky")) {
                StickyAssignor own = new StickyAssignor();
                own.onAssignment(new Assignment(owned), new ConsumerGroupMetadata("group", 1, member, Optional.empty()));
                data = own.subscriptionUserData(Set.copyOf(subscription.topics()));
                owned = List.of();
            }
            old.put(member, new Subscription(subscription.topics(), data, owned, 1, Optional.empty()));
        });
        return old;
    }
}
