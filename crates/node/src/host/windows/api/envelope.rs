//! Decrypts an envelope with a key of this machine.

use std::io;
use std::ptr::null_mut;

use windows_sys::Win32::Security::Cryptography::{
    CERT_STORE_OPEN_EXISTING_FLAG, CERT_STORE_PROV_SYSTEM_W, CERT_STORE_READONLY_FLAG,
    CERT_SYSTEM_STORE_LOCAL_MACHINE, CRYPT_DECRYPT_MESSAGE_PARA, CertCloseStore, CertOpenStore,
    CryptDecryptMessage, HCERTSTORE, PKCS_7_ASN_ENCODING, X509_ASN_ENCODING,
};

use super::wide;

struct Store(HCERTSTORE);

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: the store is open, and no other code closes it.
        unsafe { CertCloseStore(self.0, 0) };
    }
}

/// Decrypts an envelope with any matching key of the machine's own store.
pub(crate) fn decrypt(envelope: &[u8]) -> io::Result<Vec<u8>> {
    let name = wide("MY");
    let how =
        CERT_SYSTEM_STORE_LOCAL_MACHINE | CERT_STORE_READONLY_FLAG | CERT_STORE_OPEN_EXISTING_FLAG;
    // SAFETY: for this kind of store, the last argument is a name that ends with 0.
    let store = unsafe { CertOpenStore(CERT_STORE_PROV_SYSTEM_W, 0, 0, how, name.as_ptr().cast()) };
    if store.is_null() {
        return Err(io::Error::last_os_error());
    }
    let mut store = Store(store);
    let parameters = CRYPT_DECRYPT_MESSAGE_PARA {
        cbSize: u32::try_from(size_of::<CRYPT_DECRYPT_MESSAGE_PARA>()).map_err(io::Error::other)?,
        dwMsgAndCertEncodingType: X509_ASN_ENCODING | PKCS_7_ASN_ENCODING,
        cCertStore: 1,
        rghCertStore: &raw mut store.0,
    };
    let length = u32::try_from(envelope.len()).map_err(io::Error::other)?;
    let open = |to: *mut u8, room: &mut u32| {
        // SAFETY: the length of the envelope is its real length, and the length of the buffer limits the
        // result; a null pointer requests the required length.
        let opened = unsafe {
            CryptDecryptMessage(
                &raw const parameters,
                envelope.as_ptr(),
                length,
                to,
                &raw mut *room,
                null_mut(),
            )
        };
        if opened == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    let mut room = 0;
    open(null_mut(), &mut room)?;
    let mut content = vec![0; usize::try_from(room).map_err(io::Error::other)?];
    open(content.as_mut_ptr(), &mut room)?;
    content.truncate(usize::try_from(room).map_err(io::Error::other)?);
    Ok(content)
}
