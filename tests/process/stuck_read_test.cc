#include <gmock/gmock.h>

#include <cerrno>
#include <csignal>
#include <set>

#include "tests/process/cluster_job.h"
#include "tests/support/postgres_server.h"

namespace sluice::executor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// A database whose backends can be stopped.
class StuckReads : public ClusterJobs {
 protected:
  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL server";
    }
    source_ = catalog::OpenDataSource(database_.url()).value();
    const Status made =
        source_
            ->Execute(
                "CREATE TABLE points AS SELECT i, (i * 7919 % 1000) / 500.0::float8 - 1 AS a, "
                "(i * 104729 % 997) / 500.0::float8 - 1 AS b, "
                "((i * 7919 % 1000) + (i * 104729 % 997) > 1000)::int AS y "
                "FROM generate_series(1, 600000::bigint) i",
                nullptr, {})
            .status();
    ASSERT_TRUE(made.ok()) << made.ToString();
  }
  void TearDown() override { source_.reset(); }

  // Backends that read a shard for a worker; neither the master's, which cuts, nor this session's.
  std::vector<int> Readers() const {
    RecordingSink unused;
    std::vector<int> pids;
    class Pids final : public catalog::RowReceiver {
     public:
      explicit Pids(std::vector<int>* to) : to_(to) {}
      Status Header(const Schema&) override { return OkStatus(); }
      Status Rows(const RowBatch& batch) override {
        for (size_t row = 0; row < batch.rows; ++row) {
          to_->push_back(static_cast<int>(std::get<int64_t>(batch.columns[0].ValueAt(row))));
        }
        return OkStatus();
      }

     private:
      std::vector<int>* const to_;
    } receiver(&pids);
    const Status asked =
        source_
            ->Execute(
                "SELECT pid::bigint FROM pg_stat_activity WHERE datname = current_database() "
                "AND state = 'active' AND query LIKE '%points%ctid%' "
                "AND query NOT LIKE '%row_number%' AND pid <> pg_backend_pid()",
                &receiver, {})
            .status();
    EXPECT_TRUE(asked.ok()) << asked.ToString();
    return pids;
  }

  testing::PostgresTestDatabase database_;
};

// The reader's process lives and says so; its database does not. Once its lease is over another
// worker reads the shard, and the others, who wait for it in the middle of a step, go on.
TEST_F(StuckReads, R7_AWorkerWhoseDatabaseHangsIsReplaced) {
  LocalCluster cluster(Machine(8));
  std::atomic<int> stopped{0};
  std::atomic<bool> permitted{true};
  std::stop_source late;
  std::jthread stopper([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && stopped == 0 && permitted) {
      const std::vector<int> readers = Readers();
      if (!readers.empty()) {
        permitted = kill(readers.back(), SIGSTOP) == 0;
        stopped = permitted ? readers.back() : 0;
      }
    }
    // A job that waits for ever is to fail the test, and to let the server go on.
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    if (!wake.wait_for(lock, stop, std::chrono::seconds(90), [] { return false; }) &&
        !stop.stop_requested()) {
      late.request_stop();
    }
  });
  const auto own = catalog::OpenDataSource(database_.url()).value();
  RecordingSink sink;
  const Status status =
      Run(TrainText("m", "train.epoch=2, engine.num_workers=2, engine.strategy='allreduce'"),
          cluster, *own, sink, late.get_token());
  stopper.request_stop();
  stopper.join();
  if (stopped != 0) {
    kill(stopped, SIGCONT);
  }
  if (!permitted) {
    GTEST_SKIP() << "another user's PostgreSQL";
  }
  ASSERT_NE(stopped, 0) << "nothing was read";
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_THAT(Events(1), Contains(HasSubstr("the database has not answered for 20 seconds")));
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

}  // namespace
}  // namespace sluice::executor
