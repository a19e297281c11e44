// Starts Apache Iceberg's own REST catalog, the servlet and adapter that its RESTCatalogServer starts too, over Iceberg's
// JdbcCatalog in an SQLite database. Its own main class listens on every address of the machine and asks nobody who he is:
// this one listens on 127.0.0.1, on a port that the system chooses and that is printed, and lets only those in who show a
// token that the catalog gave them.
//
// Arguments: the warehouse's URL, the database's file.

import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.EnumSet;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.FilterHolder;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

class RestCatalog {
  public static void main(String[] args) throws Exception {
    var properties =
        Map.of(
            "catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri", "jdbc:sqlite:" + args[1],
            "jdbc.schema-version", "V1",
            "io-impl", "org.apache.iceberg.hadoop.HadoopFileIO",
            "warehouse", args[0],
            // One at a time: SQLite takes one writer, and its driver does not wait.
            "clients", "1");
    var catalog = CatalogUtil.buildIcebergCatalog("default", properties, new Configuration());
    var handler = new ServletContextHandler();
    handler.addServlet(
        new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    handler.addFilter(new FilterHolder(new Tokens()), "/*", EnumSet.of(DispatcherType.REQUEST));
    var server = new Server(new InetSocketAddress("127.0.0.1", 0));
    server.setHandler(handler);
    server.start();
    System.out.println("port " + ((ServerConnector) server.getConnectors()[0]).getLocalPort());
    server.join();
  }

  static class Tokens implements Filter {
    // What the catalog's token endpoint gives a client begins so, and goes on with the client's name.
    static final String OURS = "Bearer client-credentials-token:sub=";

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
        throws IOException, ServletException {
      var asked = (HttpServletRequest) request;
      var shown = asked.getHeader("Authorization");
      if (asked.getRequestURI().endsWith("/v1/oauth/tokens")
          || (shown != null && shown.startsWith(OURS) && !shown.endsWith("=stranger"))) {
        chain.doFilter(request, response);
        return;
      }
      var refused = (HttpServletResponse) response;
      refused.setStatus(401);
      refused.setContentType("application/json");
      refused
          .getWriter()
          .write(
              "{\"error\":{\"message\":\"no token\",\"type\":\"NotAuthorizedException\",\"code\":401}}");
    }
  }
}
