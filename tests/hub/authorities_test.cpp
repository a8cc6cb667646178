#include "hub/authorities.h"

#include "base/temp_folder.h"
#include "catch.h"

using twinkle::hub::find_authorities;

TEST_CASE("certificates are the distribution's, else certifi's, else pip's") {
    twinkle::test::TempFolder folder;
    const auto found = [&] { return find_authorities(folder / "root", folder / "venv"); };
    CHECK(found().empty());
    const std::string packages = "venv/lib/python3.12/site-packages/";
    folder.write(packages + "pip/_vendor/certifi/cacert.pem", "");
    CHECK(found() == folder / (packages + "pip/_vendor/certifi/cacert.pem"));
    folder.write(packages + "certifi/cacert.pem", "");
    CHECK(found() == folder / (packages + "certifi/cacert.pem"));
    folder.write("root/etc/pki/tls/certs/ca-bundle.crt", "");
    CHECK(found() == folder / "root/etc/pki/tls/certs/ca-bundle.crt");
    folder.write("root/etc/ssl/certs/ca-certificates.crt", "");
    CHECK(found() == folder / "root/etc/ssl/certs/ca-certificates.crt");
}
