// Confluent's Parallel Consumer on one topic: run by benchmarks/peers.py.
// Arguments: brokers, topic, group, records, seconds to wait in each, KEY or UNORDERED. Prints seconds from the first
// record to the last.

import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

public class ParallelConsumer {
    public static void main(String[] arguments) throws Exception {
        long records = Long.parseLong(arguments[3]);
        long millis = Math.round(Double.parseDouble(arguments[4]) * 1000);
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments[0]);
        config.put("group.id", arguments[2]);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        // Keys as strings: arrays of bytes are only equal to themselves, and would not be held in order.
        var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        var options = ParallelConsumerOptions.<String, String>builder()
                .ordering(ProcessingOrder.valueOf(arguments[5]))
                .maxConcurrency(100)
                .consumer(consumer)
                .build();
        ParallelStreamProcessor<String, String> processor = ParallelStreamProcessor.createEosStreamProcessor(options);
        var done = new CountDownLatch(1);
        var seen = new AtomicLong();
        var began = new AtomicLong();
        processor.subscribe(List.of(arguments[1]));
        processor.poll(context -> {
            began.compareAndSet(0, System.nanoTime());
            if (millis > 0) {
                try {
                    Thread.sleep(millis);
                } catch (InterruptedException stopped) {
                    throw new IllegalStateException(stopped);
                }
            }
            if (seen.incrementAndGet() == records) {
                System.out.println((System.nanoTime() - began.get()) / 1e9);
                done.countDown();
            }
        });
        done.await();
        processor.closeDontDrainFirst();
        System.exit(0);
    }
}
