import java.sql.*;
import java.util.*;

/** PostgreSQL's JDBC driver at the PostgreSQL door. Arguments: host, port, database, user. */
public class WithJdbc {
  static void check(boolean right, Object what) {
    if (!right) {
      throw new AssertionError(what);
    }
  }

  static String stateOf(Connection c, String sql) throws SQLException {
    try (Statement s = c.createStatement()) {
      s.execute(sql);
      return "no error";
    } catch (SQLException error) {
      return error.getSQLState();
    }
  }

  public static void main(String[] args) throws Exception {
    Properties properties = new Properties();
    properties.setProperty("user", args[3]);
    properties.setProperty("password", "secret");
    properties.setProperty("sslmode", "require");
    String url = "jdbc:postgresql://" + args[0] + ":" + args[1] + "/" + args[2];
    try (Connection c = DriverManager.getConnection(url, properties)) {
      DatabaseMetaData about = c.getMetaData();
      try (ResultSet columns = about.getColumns(null, "public", "points", null)) {
        check(columns.next() && columns.getString("COLUMN_NAME").equals("x"), "columns");
      }
      try (Statement s = c.createStatement();
          ResultSet row = s.executeQuery("SELECT * FROM points LABEL y INTO by_jdbc")) {
        check(row.next() && row.getInt("rows") > 200 && row.getDouble("loss") > 0, "trained");
        check(s.getWarnings() != null, "no notices");
      }
      // Often enough for the driver to prepare it on the server, and to read numbers in binary.
      try (PreparedStatement predict =
          c.prepareStatement("SELECT x FROM points WHERE x < ? TO PREDICT USING by_jdbc")) {
        for (int i = 2; i < 12; ++i) {
          predict.setDouble(1, i);
          int rows = 0;
          try (ResultSet scored = predict.executeQuery()) {
            while (scored.next()) {
              ++rows;
              check(scored.getDouble("x") == rows, "x");
            }
          }
          check(rows == i - 1, rows);
        }
      }
      c.setAutoCommit(false);
      try (Statement s = c.createStatement()) {
        s.setFetchSize(70);  // a portal that is suspended four times
        int rows = 0;
        try (ResultSet scored = s.executeQuery("SELECT x FROM points TO PREDICT USING by_jdbc")) {
          while (scored.next()) {
            ++rows;
          }
        }
        check(rows == 300, rows);
        s.execute("SELECT x FROM points TO PREDICT by_jdbc_scored.y USING by_jdbc");
      }
      c.rollback();
      c.setAutoCommit(true);
      check(stateOf(c, "SELECT * FROM by_jdbc_scored").equals("42P01"), "it was rolled back");
      check(stateOf(c, "SELECT * FROM nope LABEL y INTO m").equals("42P01"), "no such table");
      check(stateOf(c, "SELECT * FROM points LABEL z INTO m").equals("42703"), "no such column");
      try (Statement s = c.createStatement()) {
        Timer timer = new Timer(true);
        timer.schedule(
            new TimerTask() {
              @Override
              public void run() {
                try {
                  s.cancel();
                } catch (SQLException error) {
                  throw new AssertionError(error);
                }
              }
            },
            1500);
        s.execute(
            "SELECT * FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8], train.epoch=100000 LABEL y INTO m");
        check(false, "it was not cancelled");
      } catch (SQLException cancelled) {
        check(cancelled.getSQLState().equals("57014"), cancelled);
      }
      try (Statement s = c.createStatement();
          ResultSet alive = s.executeQuery("SELECT ssl FROM pg_stat_ssl LIMIT 1")) {
        check(alive.next(), "alive");
      }
    }
    System.out.println("ok");
  }
}
