#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "catalog/model_store.h"
#include "executor/executor.h"
#include "executor/local/local_cluster.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "tests/support/eventually.h"
#include "tests/support/recording_sink.h"

namespace sluice::executor {

// Statements whose trainings run as processes of the real binary, over a SQLite file, or over
// PostgreSQL if a test asks for it.
class ClusterJobs : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 60'000;

  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/sluice-cluster-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    UseDatabase("sqlite:" + folder_.string() + "/test.db",
                "CREATE TABLE points AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT "
                "i + 1 FROM n WHERE i < " +
                    std::to_string(kRows) +
                    ") SELECT i, (i * 7919 % 1000) / 500.0 - 1 AS a, (i * 104729 % 997) / "
                    "500.0 - 1 AS b, ((i * 7919 % 1000) + (i * 104729 % 997) > 1000) AS y "
                    "FROM n");
  }
  void UseDatabase(const std::string& url, const std::string& create_points) {
    url_ = url;
    source_ = Open();
    catalog_ = catalog::OpenCatalog(Url()).value();
    const Status made = source_->Execute(create_points, nullptr, {}).status();
    ASSERT_TRUE(made.ok()) << made.ToString();
  }
  // The same points in PostgreSQL.
  void UsePostgres(const std::string& url) {
    UseDatabase(url,
                "CREATE TABLE points AS SELECT i, (i * 7919 % 1000) / 500.0::float8 - 1 AS a, "
                "(i * 104729 % 997) / 500.0::float8 - 1 AS b, ((i * 7919 % 1000) + (i * "
                "104729 % 997) > 1000)::int AS y FROM generate_series(1::bigint, " +
                    std::to_string(kRows) + ") AS i");
  }
  void TearDown() override {
    source_.reset();
    catalog_.reset();
    if (!folder_.empty()) {
      std::filesystem::remove_all(folder_);
    }
  }

  static LocalCluster::Options Machine(double slots) {
    LocalCluster::Options options;
    options.binary = SLUICE_BINARY;
    options.slots.slots = slots;
    return options;
  }
  std::unique_ptr<catalog::DataSource> Open() const {
    return catalog::OpenDataSource(Url()).value();
  }
  const std::string& Url() const { return url_; }

  // A database's URL with another role, and a port of this machine; 0: its own host and port.
  static std::string UrlBy(const std::string& url, const std::string& who, int port) {
    const size_t slash = url.find('/', url.find("//") + 2);
    const size_t colon = url.rfind(':', slash);
    const size_t at = url.rfind('@', slash);
    const std::string host = url.substr(at + 1, colon - at - 1);
    return "postgresql://" + who + "@" + (port > 0 ? "127.0.0.1" : host) + ":" +
           (port > 0 ? std::to_string(port) : url.substr(colon + 1, slash - colon - 1)) +
           url.substr(slash);
  }
  static int PortOf(const std::string& url) {
    const size_t slash = url.find('/', url.find("//") + 2);
    return std::stoi(url.substr(url.rfind(':', slash) + 1));
  }

  // The integer in the first column of the first row; 0: there is none.
  static int64_t Ask(catalog::DataSource& source, const std::string& sql) {
    struct First final : catalog::RowReceiver {
      Status Header(const Schema&) override { return OkStatus(); }
      Status Rows(const RowBatch& batch) override {
        number = batch.rows > 0 ? batch.columns[0].int64s[0] : 0;
        return OkStatus();
      }
      int64_t number = 0;
    } first;
    const auto asked = source.Execute(sql, &first, {});
    EXPECT_TRUE(asked.ok()) << asked.status().ToString();
    return first.number;
  }
  int64_t Ask(const std::string& sql) const { return Ask(*source_, sql); }

  static std::string TrainText(const std::string& model, const std::string& attributes) {
    return "SELECT a, b, y FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8], " +
           attributes + " LABEL y INTO " + model;
  }
  // Each call has its own source, as each script of a gateway does, and a catalog that reaches the
  // server in the same way.
  static Status Run(const std::string& sql, LocalCluster& cluster, catalog::DataSource& source,
                    RecordingSink& sink, const std::stop_token& stop = {}) {
    ASSIGN_OR_RETURN(const auto statements, parser::Parse(sql));
    const auto& train = std::get<parser::TrainStatement>(statements.at(0));
    ASSIGN_OR_RETURN(const auto catalog, catalog::OpenCatalog(source.url(), source.secret()));
    ASSIGN_OR_RETURN(const plan::Plan plan,
                     planner::MakePlan(train, source, catalog->models(), {}));
    Context context{source, *catalog, "tester", sql, stop, &cluster};
    return Execute(plan, context, sink);
  }
  std::vector<std::string> Events(int64_t job) const {
    std::vector<std::string> lines;
    const std::vector<catalog::JobEvent> events = catalog_->jobs().Events(job).value();
    for (const catalog::JobEvent& event : events) {
      lines.push_back(event.kind + " " + event.detail);
    }
    return lines;
  }
  int Count(int64_t job, const std::string& kind) const {
    int count = 0;
    for (const std::string& line : Events(job)) {
      count += line.starts_with(kind + " ") ? 1 : 0;
    }
    return count;
  }

  // Processes by parent, without zombies.
  static std::multimap<int, int> Children() {
    std::multimap<int, int> children;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream in(entry.path() / "stat");
      std::string name, state;
      int pid = 0, parent = 0;
      if (in >> pid >> name >> state >> parent && state != "Z") {
        children.emplace(parent, pid);
      }
    }
    return children;
  }
  static int ChildrenOf(int pid) { return static_cast<int>(Children().count(pid)); }

  std::filesystem::path folder_;
  std::string url_;
  std::unique_ptr<catalog::DataSource> source_;
  std::unique_ptr<catalog::Catalog> catalog_;
};

}  // namespace sluice::executor
