#include "executor/jobs/unwritten_news.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::executor {
namespace {

TEST(UnwrittenNews, WhatCouldNotBeWrittenComesFirst) {
  UnwrittenNews news;
  news.Add(catalog::JobEvent{1, "one", ""});
  news.Add(catalog::JobMetric{1, 0, "loss", 0.5});
  const auto [events, metrics] = news.Take();
  EXPECT_TRUE(news.empty());
  news.Add(catalog::JobEvent{2, "two", ""});
  news.PutBack(events, metrics);
  ASSERT_EQ(news.events().size(), 2U);
  EXPECT_EQ(news.events()[0].kind, "one");
  EXPECT_EQ(news.events()[1].kind, "two");
  EXPECT_EQ(news.Take().second.size(), 1U);
}

TEST(UnwrittenNews, NothingGrowsWithoutLimit) {
  UnwrittenNews news;
  for (size_t i = 0; i < 2 * UnwrittenNews::kMax; ++i) {
    news.Add(catalog::JobEvent{static_cast<int64_t>(i), "", ""});
    news.AddPoint({{0, 0, "loss", 1}});
    news.AddNotice("said", 0);
  }
  EXPECT_EQ(news.TakeNotices().size(), UnwrittenNews::kMax);
  EXPECT_EQ(news.last_notices().size(), 20U);
  news.PutBack({catalog::JobEvent{-1, "first", ""}}, {});
  const auto [events, metrics] = news.Take();
  EXPECT_EQ(events.size(), UnwrittenNews::kMax);
  EXPECT_EQ(events[0].kind, "first");
  EXPECT_EQ(metrics.size(), UnwrittenNews::kMax);
}

TEST(UnwrittenNews, NoticesOfOneMomentKeepTheirOrder) {
  UnwrittenNews news;
  news.AddNotice("a", 100);
  news.AddNotice("b", 100);
  news.AddNotice("c", 99);
  EXPECT_EQ(news.TakeNotices(), (UnwrittenNews::Notices{{100, "a"}, {101, "b"}, {102, "c"}}));
}

}  // namespace
}  // namespace sluice::executor
