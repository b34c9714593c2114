#include "k8s/known_objects.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sluice::k8s {
namespace {

Object Named(const std::string& name, const std::string& uid, const std::string& version) {
  Object object;
  object.name = name;
  object.uid = uid;
  object.resource_version = version;
  return object;
}

std::string Words(const std::vector<ObjectChange>& changes) {
  std::string text;
  for (const ObjectChange& change : changes) {
    text += std::string(1, "+~-"[static_cast<size_t>(change.kind)]) + change.object.name + "@" +
            change.object.resource_version + " ";
  }
  return text;
}

class KnownObjectsTest : public testing::Test {
 protected:
  std::string List(std::vector<Object> objects, const std::string& version) {
    const auto changes = known_.OnList(std::move(objects), version);
    return changes.ok() ? Words(*changes) : changes.status().message();
  }
  std::string Frame(WatchFrame::Kind kind, Object object) {
    WatchFrame frame;
    frame.kind = kind;
    frame.object = std::move(object);
    return Words(known_.OnFrame(std::move(frame)));
  }
  std::string Added(const Object& object) { return Frame(WatchFrame::Kind::kAdded, object); }
  std::string Modified(const Object& object) { return Frame(WatchFrame::Kind::kModified, object); }
  std::string Deleted(const Object& object) { return Frame(WatchFrame::Kind::kDeleted, object); }

  KnownObjects known_;
};

TEST_F(KnownObjectsTest, AListTellsWhatIsDifferent) {
  EXPECT_EQ(List({Named("a", "1", "5"), Named("b", "2", "6"), Named("c", "3", "7")}, "7"),
            "+a@5 +b@6 +c@7 ");
  EXPECT_EQ(List({Named("a", "1", "5"), Named("b", "2", "9"), Named("d", "4", "8")}, "10"),
            "-c@7 +d@8 ~b@9 ");
  EXPECT_EQ(known_.version(), "10");
}

TEST_F(KnownObjectsTest, AListNeverGoesBackInTime) {
  List({Named("a", "1", "5")}, "7");
  Deleted(Named("a", "1", "12"));
  EXPECT_EQ(List({Named("a", "1", "5")}, "11"), "a list is of version 11, and 12 was seen already");
  EXPECT_EQ(List({}, "12"), "");
}

TEST_F(KnownObjectsTest, AnotherObjectOfTheSameNameIsAnother) {
  List({Named("a", "1", "5")}, "7");
  EXPECT_EQ(List({Named("a", "2", "8")}, "8"), "-a@5 +a@8 ");
  EXPECT_EQ(Added(Named("a", "3", "12")), "-a@8 +a@12 ") << "its deletion was never told";
  EXPECT_EQ(Deleted(Named("a", "2", "11")), "");
}

TEST_F(KnownObjectsTest, WhatIsToldTwiceLateOrInTheWrongOrderChangesNothing) {
  List({Named("a", "1", "5")}, "5");
  EXPECT_EQ(Added(Named("a", "1", "5")), "");
  EXPECT_EQ(Modified(Named("a", "1", "9")), "~a@9 ");
  EXPECT_EQ(Modified(Named("a", "1", "9")), "");
  EXPECT_EQ(Modified(Named("a", "1", "7")), "");
  EXPECT_EQ(Deleted(Named("a", "1", "8")), "") << "older than what is known";
  EXPECT_EQ(Deleted(Named("a", "1", "10")), "-a@10 ");
  EXPECT_EQ(Deleted(Named("a", "1", "10")), "");
  EXPECT_EQ(Modified(Named("a", "1", "9")), "") << "it is gone";
  EXPECT_EQ(Deleted(Named("b", "2", "11")), "") << "it was never there";
  EXPECT_EQ(Modified(Named("c", "3", "12")), "+c@12 ") << "its creation was not told";
}

TEST_F(KnownObjectsTest, ABookmarkMovesTheVersionOnly) {
  List({}, "5");
  EXPECT_EQ(Frame(WatchFrame::Kind::kBookmark, Named("", "", "40")), "");
  EXPECT_EQ(known_.version(), "40");
  EXPECT_EQ(Frame(WatchFrame::Kind::kBookmark, Named("", "", "39")), "");
  EXPECT_EQ(known_.version(), "40");
}

}  // namespace
}  // namespace sluice::k8s
