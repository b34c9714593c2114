#include <chrono>
#include <iostream>
#include <pqxx/pqxx>
#include <string>
#include <thread>

// libpqxx at the PostgreSQL door, over either database. Argument: the connection's parameters.
namespace {

void Check(bool right, const std::string& what) {
  if (!right) {
    throw std::runtime_error(what);
  }
}

std::string StateOf(pqxx::connection& connection, const std::string& sql) {
  try {
    pqxx::nontransaction work(connection);
    work.exec(sql);
  } catch (const pqxx::sql_error& error) {
    return error.sqlstate();
  }
  return "no error";
}

void Run(const std::string& parameters) {
  pqxx::connection connection(parameters + " sslmode=require");
  {
    pqxx::nontransaction work(connection);
    const pqxx::result columns = work.exec_params(
        "SELECT data_type FROM information_schema.columns WHERE table_schema = 'public' AND"
        " table_name = $1 AND column_name = 'x'",
        "points");
    Check(columns.size() == 1 && columns[0][0].as<std::string>() == "double precision", "browsed");
    const pqxx::result trained = work.exec("SELECT x, y FROM points LABEL y INTO by_pqxx");
    Check(trained.size() == 1 && trained[0]["rows"].as<int>() > 200, "trained");
  }
  const bool sqlite =
      std::string(connection.get_variable("server_version")).find("SQLite") != std::string::npos;
  connection.prepare("score", "SELECT x FROM points WHERE x < $1 TO PREDICT USING by_pqxx");
  {
    pqxx::work work(connection);
    const pqxx::result scored = work.exec_prepared("score", 5);
    Check(scored.size() == 4 && scored[0]["x"].as<double>() == 1, "predicted");
    work.exec("SELECT x FROM points TO PREDICT by_pqxx_scored.y USING by_pqxx");
    Check(work.exec("SELECT count(*) FROM by_pqxx_scored")[0][0].as<int>() == 300, "its own table");
    work.abort();
  }
  // Over SQLite it was written on another connection, and stays (a WARNING says so).
  Check(StateOf(connection, "SELECT * FROM by_pqxx_scored") == (sqlite ? "no error" : "42P01"),
        "rolled back, or not");
  Check(StateOf(connection, "SELECT * FROM points LABEL z INTO m") == "42703", "no such column");
  std::thread canceller([&connection] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    connection.cancel_query();
  });
  const std::string state = StateOf(connection,
                                    "SELECT * FROM points TO TRAIN DNNClassifier WITH "
                                    "model.hidden_units=[8], train.epoch=100000 LABEL y INTO m");
  canceller.join();
  Check(state == "57014", "cancelled: " + state);
  {
    pqxx::work work(connection);
    pqxx::icursorstream rows(work, "SELECT x FROM points TO PREDICT USING by_pqxx", "scored", 128);
    size_t total = 0;
    for (pqxx::result part; rows >> part;) {
      total += part.size();
    }
    Check(total == 300, "by a cursor");
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::cout << error.what() << '\n';
    return 1;
  }
  std::cout << "ok\n";
  return 0;
}
