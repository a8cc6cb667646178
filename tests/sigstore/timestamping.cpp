#include "timestamping.h"

#include <openssl/ts.h>

#include "sigstore/hash.h"
#include "sigstore/openssl.h"

namespace twinkle::test {
namespace {

using namespace sigstore;

int give_time(TS_RESP_CTX*, void* data, long* seconds, long* microseconds) {
    *seconds = static_cast<long>(to_seconds(*static_cast<Time*>(data)));
    *microseconds = 0;
    return 1;
}

ASN1_INTEGER* give_serial(TS_RESP_CTX*, void*) {
    ASN1_INTEGER* serial = ASN1_INTEGER_new();
    ASN1_INTEGER_set(serial, 4711);
    return serial;
}

std::string timestamp_request(std::string_view message, bool with_certificate) {
    using Algorithm = std::unique_ptr<X509_ALGOR, FreeWith<X509_ALGOR_free>>;
    using Imprint = std::unique_ptr<TS_MSG_IMPRINT, FreeWith<TS_MSG_IMPRINT_free>>;
    using Request = std::unique_ptr<TS_REQ, FreeWith<TS_REQ_free>>;
    const Request request(TS_REQ_new());
    const Imprint imprint(TS_MSG_IMPRINT_new());
    const Algorithm algorithm(X509_ALGOR_new());
    X509_ALGOR_set0(algorithm.get(), OBJ_nid2obj(NID_sha256), V_ASN1_NULL, nullptr);
    auto digest = hash(HashAlgorithm::sha256, message);
    TS_MSG_IMPRINT_set_algo(imprint.get(), algorithm.get());
    TS_MSG_IMPRINT_set_msg(imprint.get(), reinterpret_cast<unsigned char*>(digest.data()),
                           static_cast<int>(digest.size()));
    TS_REQ_set_version(request.get(), 1);
    TS_REQ_set_msg_imprint(request.get(), imprint.get());
    TS_REQ_set_cert_req(request.get(), with_certificate ? 1 : 0);
    return to_der<const TS_REQ>(request.get(), &i2d_TS_REQ);
}

}  // namespace

std::string make_timestamp(std::string_view message, Time time, const MadeCertificate& authority,
                           const SigningKey& key, bool with_certificate) {
    using Context = std::unique_ptr<TS_RESP_CTX, FreeWith<TS_RESP_CTX_free>>;
    using Response = std::unique_ptr<TS_RESP, FreeWith<TS_RESP_free>>;
    using Stream = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
    const Context context(TS_RESP_CTX_new());
    TS_RESP_CTX_set_signer_cert(context.get(), static_cast<X509*>(authority.get()));
    TS_RESP_CTX_set_signer_key(context.get(), static_cast<EVP_PKEY*>(key.get()));
    TS_RESP_CTX_set_signer_digest(context.get(), EVP_sha256());
    TS_RESP_CTX_set_ess_cert_id_digest(context.get(), EVP_sha256());
    const std::unique_ptr<ASN1_OBJECT, FreeWith<ASN1_OBJECT_free>> policy(
        OBJ_txt2obj("1.3.6.1.4.1.57264.2", 1));
    TS_RESP_CTX_set_def_policy(context.get(), policy.get());
    TS_RESP_CTX_add_md(context.get(), EVP_sha256());
    TS_RESP_CTX_set_serial_cb(context.get(), give_serial, nullptr);
    TS_RESP_CTX_set_time_cb(context.get(), give_time, &time);
    const auto request = timestamp_request(message, with_certificate);
    const Stream stream(BIO_new_mem_buf(request.data(), static_cast<int>(request.size())));
    const Response response(TS_RESP_create_response(context.get(), stream.get()));
    return to_der<const TS_RESP>(response.get(), &i2d_TS_RESP);
}

}  // namespace twinkle::test
