#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>

#include "tests/process/cluster_job.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace sluice::executor {
namespace {

class KilledPrediction : public ClusterJobs {
 protected:
  static constexpr char kPredict[] = "SELECT * FROM points TO PREDICT scored.y2 USING m";
  pid_t Start(const std::string& sql) const {
    std::string binary = SLUICE_BINARY, command = "sql", source = "--source=" + Url(),
                text = "--command=" + sql;
    char* arguments[] = {binary.data(), command.data(), source.data(), text.data(), nullptr};
    pid_t gateway = 0;
    EXPECT_EQ(posix_spawn(&gateway, binary.c_str(), nullptr, nullptr, arguments, environ), 0);
    return gateway;
  }
  int64_t Ask(const std::string& sql) const {
    struct First final : catalog::RowReceiver {
      Status Header(const Schema&) override { return OkStatus(); }
      Status Rows(const RowBatch& batch) override {
        number = batch.rows > 0 ? batch.columns[0].int64s[0] : -1;
        return OkStatus();
      }
      int64_t number = -1;
    } first;
    const auto asked = source_->Execute(sql, &first, {});
    EXPECT_TRUE(asked.ok()) << asked.status().ToString();
    return first.number;
  }
  int64_t Tables(const std::string& name) const {
    return Ask("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name " + name);
  }
};

// A prediction is killed repeatedly, each time later: its table does not exist until every row
// does.
TEST_F(KilledPrediction, E8_EveryRowIsThereOnceOrTheTableIsNot) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  const Status trained =
      Run(TrainText("m", "train.epoch=1, engine.strategy='local'"), cluster, *source_, sink);
  ASSERT_TRUE(trained.ok()) << trained.ToString();
  int killed_while_it_wrote = 0;
  for (int attempt = 0; attempt < 6; ++attempt) {
    const pid_t gateway = Start(kPredict);
    // Rows are being written to a table with another name.
    EXPECT_TRUE(Eventually([&] { return Tables("LIKE 'sluice_new_%' OR name = 'scored'") > 0; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * attempt));
    kill(gateway, SIGKILL);
    waitpid(gateway, nullptr, 0);
    if (Tables("= 'scored'") == 0) {
      ++killed_while_it_wrote;
    } else {
      EXPECT_EQ(Ask("SELECT count(*) FROM scored"), kRows);
      break;
    }
  }
  EXPECT_GT(killed_while_it_wrote, 0);
  const pid_t gateway = Start(kPredict);
  int status = 0;
  waitpid(gateway, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Ask("SELECT count(*) FROM scored"), kRows);
  EXPECT_EQ(Ask("SELECT count(DISTINCT i) FROM scored"), kRows);
  EXPECT_EQ(Ask("SELECT count(*) FROM scored WHERE y2 IS NULL"), 0);
}

}  // namespace
}  // namespace sluice::executor
