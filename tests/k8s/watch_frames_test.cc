#include "k8s/watch_frames.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::k8s {
namespace {

constexpr std::string_view kStream =
    R"({"type":"ADDED","object":{"metadata":{"name":"a}\"{","uid":"1","resourceVersion":"5"},"x":[1,{}]}}
  {"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12"}}}{"type":"DELETED",
"object":{"metadata":{"name":"b","uid":"2","resourceVersion":"13"}}}
)";

TEST(FrameDecoder, GivesTheSameFramesWhereverTheBytesAreCut) {
  std::vector<std::string> whole;
  ASSERT_TRUE(FrameDecoder().Feed(kStream, whole).ok());
  ASSERT_EQ(whole.size(), 3U);
  for (size_t part = 1; part < kStream.size(); ++part) {
    FrameDecoder decoder;
    std::vector<std::string> frames;
    for (size_t at = 0; at < kStream.size(); at += part) {
      ASSERT_TRUE(decoder.Feed(kStream.substr(at, part), frames).ok());
    }
    EXPECT_EQ(frames, whole) << part;
  }
}

TEST(FrameDecoder, StopsAtWhatIsNoWatch) {
  std::vector<std::string> frames;
  FrameDecoder page;
  EXPECT_EQ(page.Feed("<html>", frames).message(),
            "the watch sent something that is not a JSON object");
  EXPECT_FALSE(page.Feed("{}", frames).ok()) << "an error is for good";
  EXPECT_EQ(FrameDecoder().Feed("{" + std::string(300, '['), frames).message(),
            "the watch sent an object nested deeper than 200 levels");
  EXPECT_TRUE(frames.empty());
}

TEST(FrameDecoder, KeepsNoMoreThanTheLimit) {
  FrameDecoder decoder;
  std::vector<std::string> frames;
  const std::string part(1 << 20, 'x');
  Status status = decoder.Feed("{\"a\":\"", frames);
  for (int i = 0; i < 9 && status.ok(); ++i) {
    status = decoder.Feed(part, frames);
  }
  EXPECT_EQ(status.message(), "the watch sent an object of more than 8 MiB");
}

TEST(WatchFrame, IsAnEventABookmarkOrAnError) {
  std::vector<std::string> frames;
  ASSERT_TRUE(FrameDecoder().Feed(kStream, frames).ok());
  const WatchFrame added = ReadWatchFrame(frames[0]).value();
  EXPECT_EQ(added.kind, WatchFrame::Kind::kAdded);
  EXPECT_EQ(added.object.name, "a}\"{");
  EXPECT_EQ(added.object.resource_version, "5");
  const WatchFrame bookmark = ReadWatchFrame(frames[1]).value();
  EXPECT_EQ(bookmark.kind, WatchFrame::Kind::kBookmark);
  EXPECT_EQ(bookmark.object.resource_version, "12");
  EXPECT_EQ(ReadWatchFrame(frames[2])->kind, WatchFrame::Kind::kDeleted);
  const WatchFrame error =
      ReadWatchFrame(
          R"({"type":"ERROR","object":{"kind":"Status","reason":"Expired","code":410,"message":"old"}})")
          .value();
  EXPECT_EQ(error.kind, WatchFrame::Kind::kError);
  EXPECT_EQ(error.code, 410);
  EXPECT_EQ(error.reason, "Expired");
  for (const std::string damaged :
       {R"({"type":"ADDED"})", R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})",
        R"({"type":"RENAMED","object":{}})", R"({"type":"ADDED","object":{,}})"}) {
    EXPECT_FALSE(ReadWatchFrame(damaged).ok()) << damaged;
  }
}

}  // namespace
}  // namespace sluice::k8s
