#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "catalog/postgres/postgres_copy_sender_internal.h"

namespace sluice::catalog {
namespace {

TEST(CopySender, SendsEverythingInOrder) {
  std::vector<std::string> sent;
  CopySender sender([&](const std::string& text) {
    sent.push_back(text);
    return OkStatus();
  });
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(sender.Put(std::to_string(i)).ok());
  }
  ASSERT_TRUE(sender.Finish().ok());
  ASSERT_EQ(sent.size(), 1000U);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(sent[static_cast<size_t>(i)], std::to_string(i));
  }
}

TEST(CopySender, AnErrorIsKeptAndNothingMoreIsSent) {
  std::atomic<int> calls = 0;
  CopySender sender([&](const std::string& text) {
    ++calls;
    return text == "bad" ? InvalidArgument("refused") : OkStatus();
  });
  ASSERT_TRUE(sender.Put("good").ok());
  ASSERT_TRUE(sender.Finish().ok());
  static_cast<void>(sender.Put("bad"));
  EXPECT_EQ(sender.Finish().message(), "refused");
  EXPECT_EQ(sender.Put("good").message(), "refused");
  EXPECT_EQ(sender.Finish().message(), "refused");
  EXPECT_EQ(calls, 2);
}

TEST(CopySender, WaitsWhileTooMuchIsWaiting) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  std::atomic<bool> put_all = false;
  CopySender sender([&](const std::string& /*text*/) {
    gone.wait();
    return OkStatus();
  });
  const std::string half(CopySender::kMostBytes / 2, 'x');
  std::jthread writer([&] {
    for (int i = 0; i < 4; ++i) {  // one is being sent, two wait
      EXPECT_TRUE(sender.Put(half).ok());
    }
    put_all = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(put_all);
  go.set_value();
  writer.join();
  EXPECT_TRUE(put_all);
  EXPECT_TRUE(sender.Finish().ok());
}

TEST(CopySender, AnExceptionIsAnError) {
  CopySender sender([](const std::string& /*text*/) -> Status { throw std::bad_alloc(); });
  static_cast<void>(sender.Put("x"));
  EXPECT_EQ(sender.Finish().sqlstate(), "53200");
}

TEST(CopySender, WhatWasNotSentIsDropped) {
  std::promise<void> begun, go;
  std::atomic<int> calls = 0;
  std::jthread later;
  {
    CopySender sender([&](const std::string& /*text*/) {
      if (++calls == 1) {
        begun.set_value();
        go.get_future().wait();
      }
      return OkStatus();
    });
    ASSERT_TRUE(sender.Put("a").ok());
    ASSERT_TRUE(sender.Put("b").ok());
    begun.get_future().wait();
    later = std::jthread([&go] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      go.set_value();
    });
  }
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace sluice::catalog
