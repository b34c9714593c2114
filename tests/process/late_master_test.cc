#include <gmock/gmock.h>

#include <cstdio>
#include <memory>
#include <string>

#include "tests/process/pods_fixture.h"

// Masters that are lost when all rows are trained.
namespace sluice::executor {
namespace {

constexpr int kEpochs = 12;  // of kSynchronous

// Holds a lock with which no model can be stored, while it lives.
class NoModelIsStored {
 public:
  explicit NoModelIsStored(const std::string& url)
      : psql_(popen(("psql -X -q '" + url + "' >/dev/null").c_str(), "w")) {
    std::fputs("BEGIN; LOCK TABLE sluice.model_versions IN EXCLUSIVE MODE;\n", psql_);
    std::fflush(psql_);
  }
  ~NoModelIsStored() { pclose(psql_); }  // its transaction ends with its input

 private:
  FILE* const psql_;
};

// Its workers keep the snapshot until the model is stored; without it all would be trained again.
TEST_F(Pods, AMasterThatIsLostBeforeItStoresTheModelIsFollowedByOneThatOnlyStoresIt) {
  ASSERT_TRUE(TrainHere("u", kSynchronous).ok());
  RecordingSink sink;
  Status status;
  bool lost = false;
  {
    const std::jthread killer([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(2, "epoch_done") >= 1; }));
      auto locked = std::make_unique<NoModelIsStored>(database_.url());
      const auto storing = [&] {
        return Ask(*admin_,
                   "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation "
                   "WHERE c.relname = 'model_versions' AND NOT l.granted") == 1;
      };
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || storing(); }));
      // For workers that would end now.
      static_cast<void>(
          Eventually([&] { return kubelet_->Running("worker").empty(); }, std::chrono::seconds(3)));
      const std::vector<std::string> masters = kubelet_->Running("master");
      lost = masters.size() == 1 && kubelet_->Kill(masters.back());
      EXPECT_TRUE(
          Eventually([&] { return stop.stop_requested() || Count(2, "master_started") >= 2; }));
      locked.reset();
    });
    status = Train("m", kSynchronous, sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(lost);
  EXPECT_EQ(kubelet_->Started("master").size(), 2U);
  EXPECT_EQ(Count(2, "snapshot_lost"), 0) << ::testing::PrintToString(Events(2));
  EXPECT_EQ(Count(2, "epoch_done"), kEpochs) << ::testing::PrintToString(Events(2));
  EXPECT_EQ(catalog_->jobs().Find(2)->rows_trained, kEpochs * kRowsTrained);
  EXPECT_EQ(Sha("m"), Sha("u"));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace sluice::executor
