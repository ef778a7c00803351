import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;

/** --bootstrap-server HOST:PORT --list: the part of kafka-topics.sh that a health check needs. */
public class Topics {
    public static void main(String[] arguments) throws Exception {
        List<String> given = List.of(arguments);
        if (!given.contains("--list") || !given.contains("--bootstrap-server"))
            throw new IllegalArgumentException("want --bootstrap-server HOST:PORT --list");
        Map<String, Object> settings = Map.of("bootstrap.servers",
            given.get(given.indexOf("--bootstrap-server") + 1), "default.api.timeout.ms", 10000,
            "request.timeout.ms", 10000);
        try (Admin admin = Admin.create(settings)) {
            for (String name : new TreeSet<>(admin.listTopics().names().get(10, TimeUnit.SECONDS)))
                System.out.println(name);
        }
    }
}
