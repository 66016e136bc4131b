//! An endpoint after the settings were reloaded.

use std::fmt;
use std::sync::Arc;

use super::{Service, ServiceParts};
use crate::admission::Admission;
use crate::catalogue::{Catalogue, SetupError};
use crate::tool::ToolSet;

impl Service {
    /// The same endpoint under new settings. Its counts and running calls carry over.
    pub fn again(
        &self,
        sets: Vec<ToolSet>,
        admission: Arc<Admission>,
    ) -> Result<Service, SetupError> {
        let catalogue = Catalogue::new(sets, &admission)?;
        Ok(Service {
            inner: Arc::new(ServiceParts {
                catalogue: catalogue.counting_on(&self.inner.catalogue),
                admission,
                running: self.inner.running.clone(),
            }),
        })
    }

    /// Tells whether the operator keeps a client out for now.
    #[must_use]
    pub fn is_suspended(&self, client: &str) -> bool {
        self.inner.admission.is_suspended(client)
    }

    /// Tells whether both are the same endpoint.
    #[must_use]
    pub fn is_same(&self, other: &Service) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Service")
    }
}
