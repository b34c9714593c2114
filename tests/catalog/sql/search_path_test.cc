#include "catalog/sql/search_path.h"

#include <gtest/gtest.h>

namespace sluice::catalog {
namespace {

TEST(SearchPathTest, TheUsersSchemaIsTakenOutAndAllOthersStay) {
  EXPECT_EQ(WithoutSchemaOfUser(R"("$user", public)"), "public");
  EXPECT_EQ(WithoutSchemaOfUser("$user,public"), "public");
  EXPECT_EQ(WithoutSchemaOfUser(R"(app, "$user", "a, ""b", public)"), R"(app, "a, ""b", public)");
  EXPECT_EQ(WithoutSchemaOfUser(R"("$user")"), "");
}

TEST(SearchPathTest, APathWithoutItIsUnchanged) {
  for (const char* const path : {"", "public", R"("", public)", R"(users,  "$users","x$user")"}) {
    EXPECT_EQ(WithoutSchemaOfUser(path), path);
  }
}

}  // namespace
}  // namespace sluice::catalog
