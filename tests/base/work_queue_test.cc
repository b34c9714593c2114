#include "base/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <new>
#include <vector>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WorkQueueTest : public ::testing::Test {
 protected:
  // Blocks the queue until it is released.
  void Hold() {
    ASSERT_TRUE(queue_
                    .Put([this] {
                      begun_.set_value();
                      go_.get_future().wait();
                      return Status();
                    })
                    .ok());
    begun_.get_future().wait();
  }
  // Returns when all earlier work is done.
  void Flush() {
    std::promise<void> done;
    ASSERT_TRUE(queue_
                    .Put([&done] {
                      done.set_value();
                      return Status();
                    })
                    .ok());
    done.get_future().wait();
  }
  std::vector<std::string> errors_;
  std::promise<void> begun_, go_;
  WorkQueue queue_{"calls", 3, [this](const Status& error) { errors_.push_back(error.message()); }};
};

TEST_F(WorkQueueTest, DoesOneThingAfterTheOther) {
  std::vector<int> done;
  Hold();
  for (int i : {1, 2}) {
    ASSERT_TRUE(queue_
                    .Put([&done, i] {
                      done.push_back(i);
                      return Status();
                    })
                    .ok());
  }
  EXPECT_TRUE(done.empty()) << "whoever asks does not wait for it";
  go_.set_value();
  Flush();
  EXPECT_THAT(done, ElementsAre(1, 2));
}

TEST_F(WorkQueueTest, TakesNoMoreThanMayWait) {
  Hold();
  const auto nothing = [] { return Status(); };
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(queue_.Put(nothing).ok());
  }
  const Status refused = queue_.Put(nothing);
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("3 calls wait"));
  go_.set_value();
}

TEST_F(WorkQueueTest, TellsWhatFailsAndGoesOn) {
  ASSERT_TRUE(queue_.Put([] { return NotFound("nobody"); }).ok());
  ASSERT_TRUE(queue_.Put([]() -> Status { throw std::bad_alloc(); }).ok());
  Flush();
  ASSERT_EQ(errors_.size(), 2U);
  EXPECT_EQ(errors_[0], "nobody");
}

TEST_F(WorkQueueTest, StoppedItDropsWhatWaitsAndTakesNothing) {
  bool dropped = true;
  Hold();
  ASSERT_TRUE(queue_
                  .Put([&dropped] {
                    dropped = false;
                    return Status();
                  })
                  .ok());
  std::promise<void> stopping;
  std::jthread stop([&] {
    stopping.set_value();
    queue_.Stop();
  });
  stopping.get_future().wait();
  while (queue_.Put([] { return Status(); }).code() != Code::kCancelled) {
  }
  go_.set_value();
  stop.join();
  EXPECT_TRUE(dropped);
}

}  // namespace
}  // namespace sluice
