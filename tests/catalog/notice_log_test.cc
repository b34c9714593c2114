#include "catalog/notice_log.h"

#include <gmock/gmock.h>

namespace sluice::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(NoticeLogTest, TheSameWordsOnce) {
  NoticeLog log(NoticeLog::Repeated::kOnce);
  log.Add("a");
  log.Add("b");
  log.Add("a");
  EXPECT_THAT(log.Take(), ElementsAre("a", "b"));
  log.Add("a");
  EXPECT_THAT(log.TakeLast(), ElementsAre());
  log.Clear();
  log.Add("a");
  EXPECT_THAT(log.TakeLast(), ElementsAre("a"));
}

TEST(NoticeLogTest, NoMoreThanAPersonReads) {
  for (const auto repeated : {NoticeLog::Repeated::kOnce, NoticeLog::Repeated::kEach}) {
    NoticeLog log(repeated);
    for (int i = 0; i < 1'000; ++i) {
      log.Add(std::to_string(i));
    }
    EXPECT_THAT(log.Take(), SizeIs(NoticeLog::kMaxNotices));
    EXPECT_THAT(log.TakeLast(), ElementsAre(HasSubstr("900 more")));
    EXPECT_THAT(log.TakeLast(), ElementsAre());
  }
}

TEST(NoticeLogTest, LongOnesAreCutBetweenCharacters) {
  NoticeLog log(NoticeLog::Repeated::kEach);
  log.Add("x" + [] {
    std::string text;
    for (size_t i = 0; i < NoticeLog::kLongestNotice; ++i) {
      text += "ä";
    }
    return text;
  }());
  const std::string notice = log.Take().at(0);
  EXPECT_LE(notice.size(), NoticeLog::kLongestNotice + 4);
  EXPECT_THAT(notice, ::testing::EndsWith("ä ..."));
}

}  // namespace
}  // namespace sluice::catalog
