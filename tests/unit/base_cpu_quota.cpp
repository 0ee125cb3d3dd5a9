#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "octet/base/cpu_quota.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

class CgroupTree : public testing::Test {
 protected:
  CgroupTree()
      : root_(
            fs::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name()
        ) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~CgroupTree() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::optional<double> quota(const std::string& membership) const {
    return cgroup_cpu_quota(root_.string(), membership);
  }

 private:
  fs::path root_;
};

TEST(CpuQuota, ParsesCpuMax) {
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(parse_cpu_max("50000 100000"), 0.5);
  EXPECT_EQ(parse_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_EQ(parse_cpu_max(""), std::nullopt);
  EXPECT_EQ(parse_cpu_max("100000"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("100000 0"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("-5 100000"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("99999999999999999999 100000"), std::nullopt);
}

TEST_F(CgroupTree, NoFilesMeanNoLimit) {
  EXPECT_EQ(quota(""), std::nullopt);
  EXPECT_EQ(quota("0::/a/b\n"), std::nullopt);
  EXPECT_EQ(quota("nonsense\n"), std::nullopt);
}

TEST_F(CgroupTree, TheTightestAncestorCounts) {
  write("a/cpu.max", "200000 100000\n");
  write("a/b/cpu.max", "max 100000\n");
  write("a/b/c/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota("0::/a/b/c\n"), 2.0);
  EXPECT_EQ(quota("0::/a/b\n"), 2.0);
  EXPECT_EQ(quota("0::/\n"), std::nullopt);
}

TEST_F(CgroupTree, TheRootOfTheMountCountsWhenThePathIsTheHosts) {
  write("cpu.max", "300000 100000\n");
  EXPECT_EQ(quota("0::/docker/not-here\n"), 3.0);
}

TEST_F(CgroupTree, ReadsVersionOne) {
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
  write("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  write("memory/job/cpu.cfs_quota_us", "1\n");
  EXPECT_EQ(quota("5:memory:/job\n4:cpu,cpuacct:/job\n"), 2.5);
  EXPECT_EQ(quota("5:memory:/job\n"), std::nullopt);
}

TEST_F(CgroupTree, AVersionOneQuotaOfMinusOneIsNoLimit) {
  write("cpu/cpu.cfs_quota_us", "-1\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("4:cpu:/\n"), std::nullopt);
}

}  // namespace
}  // namespace octet
