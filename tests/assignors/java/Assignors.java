import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
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

/**
 * What Kafka's own assignors answer. Reads one case a line as JSON (see tests/assignors/wire.py), writes one answer a line:
 * for each assignor asked for, the members' partitions, or the error it ended in; and whether the answer was another one
 * when the members came in another order.
 */
public final class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Assignors() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 20);
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8), 1 << 20);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Case asked = new Case(JSON.readTree(line));
            out.write(JSON.writeValueAsString(asked.answers()));
            out.write('\n');
            if (!in.ready()) {
                out.flush();
            }
        }
        out.flush();
    }

    /** A group, and which assignors are asked about it. */
    private static final class Case {
        private final JsonNode asked;
        private final Cluster cluster;

        Case(JsonNode asked) {
            this.asked = asked;
            this.cluster = cluster(asked.get("topics"));
        }

        Map<String, Object> answers() {
            Map<String, Object> answers = new LinkedHashMap<>();
            for (JsonNode name : asked.get("assignors")) {
                Map<String, Object> answer = new LinkedHashMap<>();
                Object first = answer(name.asText(), subscriptions(new HashMap<>(), null));
                answer.put(first instanceof String ? "error" : "partitions", first);
                boolean swayed = false;
                for (int order = 0; order < asked.get("orders").asInt() && !swayed; order++) {
                    swayed = !sets(first).equals(
                        sets(answer(name.asText(), subscriptions(new LinkedHashMap<>(), new Random(order)))));
                }
                answer.put("swayed", swayed);
                answers.put(name.asText(), answer);
            }
            return answers;
        }

        private Object answer(String name, Map<String, Subscription> subscriptions) {
            Map<String, Object> partitions = new HashMap<>();
            try {
                assignor(name).assign(cluster, new GroupSubscription(subscriptions)).groupAssignment()
                    .forEach((member, assignment) -> partitions.put(member, places(assignment.partitions())));
            } catch (RuntimeException | AssertionError error) {
                return error.toString();
            }
            return partitions;
        }

        private Map<String, Subscription> subscriptions(Map<String, Subscription> into, Random shuffle) {
            List<JsonNode> members = new ArrayList<>();
            asked.get("members").forEach(members::add);
            if (shuffle != null) {
                Collections.shuffle(members, shuffle);
            }
            for (JsonNode member : members) {
                into.put(member.get("id").asText(), subscription(member));
            }
            return into;
        }
    }

    static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
    }

    private static Cluster cluster(JsonNode topics) {
        Map<String, Node> nodes = new HashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.fields().forEachRemaining(topic -> {
            int number = 0;
            for (JsonNode racks : topic.getValue()) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : racks) {
                    replicas.add(nodes.computeIfAbsent(rack.asText(), name -> new Node(nodes.size(), "host", 9092, name)));
                }
                Node[] hosts = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic.getKey(), number++, null, hosts, hosts));
            }
        });
        return new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
    }

    private static Subscription subscription(JsonNode member) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        List<TopicPartition> owned = new ArrayList<>();
        member.get("owned").forEach(place -> owned.add(new TopicPartition(place.get(0).asText(), place.get(1).asInt())));
        ByteBuffer data = member.hasNonNull("data")
            ? ByteBuffer.wrap(HexFormat.of().parseHex(member.get("data").asText())) : null;
        int generation = member.hasNonNull("generation") ? member.get("generation").asInt() : -1;
        Subscription subscription = new Subscription(topics, data, owned, generation, text(member, "rack"));
        subscription.setGroupInstanceId(text(member, "static"));
        return subscription;
    }

    private static Optional<String> text(JsonNode member, String field) {
        return member.hasNonNull(field) ? Optional.of(member.get(field).asText()) : Optional.empty();
    }

    private static List<List<Object>> places(List<TopicPartition> partitions) {
        List<List<Object>> places = new ArrayList<>(partitions.size());
        partitions.forEach(partition -> places.add(List.of(partition.topic(), partition.partition())));
        return places;
    }

    @SuppressWarnings("unchecked")
    private static Object sets(Object answer) {
        if (answer instanceof String) {
            return answer;
        }
        Map<String, Object> sets = new HashMap<>();
        ((Map<String, List<Object>>) answer).forEach((member, places) -> sets.put(member, new HashSet<>(places)));
        return sets;
    }
}
