import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** A resource manager and two node managers, which start containers as processes; ends with its standard input. */
public class Yarn {
    private static final String FIFO = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler";

    public static void main(String[] arguments) throws Exception {
        YarnConfiguration conf = new YarnConfiguration();
        conf.set("yarn.resourcemanager.scheduler.class", FIFO); // the usual one wants a file of queues
        conf.set("yarn.nodemanager.resource.memory-mb", "4096");
        conf.set("yarn.nodemanager.resource.cpu-vcores", "4");
        conf.set("yarn.scheduler.minimum-allocation-mb", "256");
        // Or it would be waited for when it is stopped.
        conf.set("yarn.nodemanager.log.retain-seconds", "0");
        // Its containers are small, and the machine's disk may be nearly full of other things.
        conf.set("yarn.nodemanager.vmem-check-enabled", "false");
        conf.set("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "100");
        MiniYARNCluster cluster = new MiniYARNCluster("penstock", 2, 1, 1);
        cluster.init(conf);
        cluster.start();
        try (OutputStream out = Files.newOutputStream(Path.of("yarn-site.xml"))) {
            cluster.getConfig().writeXml(out);
        }
        System.out.println("ready");
        while (System.in.read() >= 0) {}
        cluster.stop();
        System.exit(0);
    }
}
